import { LockConfigError } from "../errors.js";
import type { Address } from "../protocol/addresses.js";
import type { Memory } from "../protocol/row.js";
import type { TableId } from "../session/session.js";
import type { HandedOff } from "./lease.js";

/** What a token says: the row, and the uuid that is on it. */
export interface HandOffToken extends TableId {
  readonly at: Address;
  readonly uuid: string;
  /** Until when it counts, in epoch ms on the table's clock. */
  readonly expires: number;
  readonly remembers: Memory;
  readonly tick: number | undefined;
  /** Until when the lock stays taken at least, on the table's clock; undefined for no longer than its section runs. */
  readonly heldUntil: number | undefined;
  /** For how long that was at first, in ms. */
  readonly heldForMs: number | undefined;
}

const PREFIX = "dynamutex-1.";

/**
 * A string of letters, digits, `-`, `_` and `.`: fit for a message, a header and a log.
 *
 * @param tick what the section was for, and not what the lease was taken for: a section before may have passed it on.
 */
export function tokenOf({ tableName, keyPrefix }: TableId, { row, hold }: HandedOff, tick: number | undefined): string {
  const { at, uuid, expires, remembers } = row;
  const token: HandOffToken = {
    tableName: plainName(tableName),
    keyPrefix,
    at: { name: at.name, sort: at.sort },
    uuid,
    expires,
    remembers,
    tick,
    heldUntil: hold?.expires,
    heldForMs: hold && Math.ceil(hold.ms),
  };
  return PREFIX + Buffer.from(JSON.stringify(token)).toString("base64url");
}

/** @throws {@link LockConfigError} for a string that is no token, and for one of another table or lock. */
export function parseToken(token: string, table: TableId, isOurs: (at: Address) => boolean): HandOffToken {
  const parsed = decoded(token);
  const { at, tableName, keyPrefix } = parsed;
  const where = `a token for ${JSON.stringify(at.name)} in table ${tableName}`;
  if (tableName !== plainName(table.tableName)) {
    throw new LockConfigError("token", where, `must be of this table, which is ${plainName(table.tableName)}`);
  }
  if (keyPrefix !== table.keyPrefix) {
    throw new LockConfigError(
      "token",
      where,
      `must have the key prefix of this table, ${JSON.stringify(table.keyPrefix)}`,
    );
  }
  if (!isOurs(at))
    throw new LockConfigError("token", where, "must be of this lock: resume it on the one that it names");
  return parsed;
}

function decoded(token: string): HandOffToken {
  if (typeof token === "string" && token.startsWith(PREFIX)) {
    try {
      const parsed: unknown = JSON.parse(Buffer.from(token.slice(PREFIX.length), "base64url").toString());
      if (isToken(parsed)) return parsed;
    } catch {
      // Not one of ours.
    }
  }
  throw new LockConfigError("token", token, "must be a token that handOff() has returned, whole and unchanged");
}

function isToken(value: unknown): value is HandOffToken {
  const token = (value ?? {}) as Record<string, unknown>;
  const at = (token.at ?? {}) as Record<string, unknown>;
  const strings = [token.tableName, token.keyPrefix, token.uuid, token.remembers, at.name, at.sort];
  const numbers = [token.tick ?? 0, token.heldUntil ?? 0, token.heldForMs ?? 0, token.expires];
  return (
    strings.every((part) => typeof part === "string") &&
    numbers.every((part) => Number.isSafeInteger(part)) &&
    ["nothing", "fence", "tick"].includes(token.remembers as string)
  );
}

/** A table may be given by its ARN, by one host and not by another. */
function plainName(tableName: string): string {
  return tableName.split(":table/")[1] ?? tableName;
}
