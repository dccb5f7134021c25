import { createHash } from "node:crypto";
import { LockConfigError } from "../errors.js";
import type { Address } from "../protocol/addresses.js";
import type { TableId } from "../session/session.js";

const PREFIX = "dynamutex-2.";

/** The longest token that is read: more than the longest key needs, even if each of its characters is escaped. */
const MOST_CHARACTERS = 32_768;

/**
 * The uuid on a row that is handed off: a hash. Everybody who reads the table sees it, but only the secret that it was made
 * from lets a process resume the lock, and only the token has that secret.
 */
export function uuidOf(secret: string): string {
  return createHash("sha256").update(secret).digest("hex");
}

/**
 * The secret for one of the rows of a token. With several, each has one of its own, which depends on all of them: so no part of the
 * rows can be resumed without the others.
 */
function secretFor(secret: string, { sort }: Address, rows: readonly Address[]): string {
  return rows.length === 1 ? secret : [secret, sort, ...rows.map((row) => row.sort)].join("/");
}

/** The uuid that a hand-off of these rows writes on one of them. */
export function handOffUuid(secret: string, at: Address, rows: readonly Address[]): string {
  return uuidOf(secretFor(secret, at, rows));
}

/**
 * A string of letters, digits, `-`, `_` and `.`: fit for a message and a header. It names the rows that it is for, and has the
 * secret; everything else about the hand-off is on the rows.
 */
export function tokenOf({ tableName, keyPrefix }: TableId, rows: readonly Address[], secret: string): string {
  const [{ name, sort }, ...others] = rows as readonly [Address, ...Address[]];
  const parts = [plainName(tableName), keyPrefix, name, sort, secret, ...others.map((other) => other.sort)];
  return PREFIX + Buffer.from(JSON.stringify(parts)).toString("base64url");
}

/** A row that is handed off, and the uuid that is on it. */
export interface HandedRow {
  readonly at: Address;
  readonly uuid: string;
}

/**
 * The rows that a token is for.
 *
 * @throws {@link LockConfigError} for a string that is no token, and for one of another table or lock.
 */
export function parseToken(
  token: string,
  table: TableId,
  isOurs: (at: Address) => boolean,
): readonly [HandedRow, ...HandedRow[]] {
  const [tableName, keyPrefix, name, sort, secret, ...others] = decoded(token);
  const where = `a token for ${JSON.stringify(name)} in table ${tableName}`;
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
  const rows = [sort, ...others].map((one) => ({ name, sort: one }));
  if (!rows.every(isOurs) || new Set([sort, ...others]).size < rows.length)
    throw new LockConfigError("token", where, "must be of this lock: resume it on the one that it names");
  const handed = rows.map((at) => ({ at, uuid: handOffUuid(secret, at, rows) }));
  return handed as unknown as readonly [HandedRow, ...HandedRow[]];
}

type Parts = readonly [string, string, string, string, string, ...string[]];

function decoded(token: string): Parts {
  if (typeof token === "string" && token.startsWith(PREFIX) && token.length <= MOST_CHARACTERS) {
    try {
      const parts: unknown = JSON.parse(Buffer.from(token.slice(PREFIX.length), "base64url").toString());
      if (Array.isArray(parts) && parts.length >= 5 && parts.every((part) => typeof part === "string")) {
        return parts as unknown as Parts;
      }
    } catch {
      // Not one of ours.
    }
  }
  throw new LockConfigError("token", shown(token), "must be a token that handOff() has returned, whole and unchanged");
}

/** Shows the prefix only: errors end up in logs, and a damaged token may be easy to repair for whoever reads it there. */
function shown(token: unknown): string {
  return typeof token === "string" ? `${token.slice(0, PREFIX.length)}…` : typeof token;
}

/** One host may name a table by its ARN, and another by its plain name. */
function plainName(tableName: string): string {
  return tableName.split(":table/")[1] ?? tableName;
}
