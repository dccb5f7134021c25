import { createHash } from "node:crypto";
import { LockConfigError } from "../errors.js";
import type { Address } from "../protocol/addresses.js";
import type { TableId } from "../session/session.js";

const PREFIX = "dynamutex-2.";

/** The longest token that is read: more than the longest key needs, even if each of its characters is escaped. */
const MOST_CHARACTERS = 32_768;

/**
 * The uuid on a row that is handed off: a hash. Everybody who reads the table sees it, but only the secret that it was made
 * from lets a process resume the lock, and only the token has that secret. The secret is hashed with its kind in front, so
 * that no hash that is made of anything else, here or in another version, is the uuid of a hand-off.
 */
export function uuidOf(secret: string): string {
  return createHash("sha256").update(`hand-off/${secret}`).digest("hex");
}

/**
 * A string of letters, digits, `-`, `_` and `.`: fit for a message and a header. It names the row that it is for, and has the
 * secret; everything else about the hand-off is on the row.
 */
export function tokenOf({ tableName, keyPrefix }: TableId, { name, sort }: Address, secret: string): string {
  const parts = [plainName(tableName), keyPrefix, name, sort, secret];
  return PREFIX + Buffer.from(JSON.stringify(parts)).toString("base64url");
}

/**
 * The row that a token is for, and the uuid that is on it.
 *
 * @throws {@link LockConfigError} for a string that is no token, and for one of another table or lock.
 */
export function parseToken(
  token: string,
  table: TableId,
  isOurs: (at: Address) => boolean,
): { readonly at: Address; readonly uuid: string } {
  const [tableName, keyPrefix, name, sort, secret] = decoded(token);
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
  const at = { name, sort };
  if (!isOurs(at))
    throw new LockConfigError("token", where, "must be of this lock: resume it on the one that it names");
  return { at, uuid: uuidOf(secret) };
}

type Parts = readonly [tableName: string, keyPrefix: string, name: string, sort: string, secret: string];

function decoded(token: string): Parts {
  if (typeof token === "string" && token.startsWith(PREFIX) && token.length <= MOST_CHARACTERS) {
    try {
      const parts: unknown = JSON.parse(Buffer.from(token.slice(PREFIX.length), "base64url").toString());
      if (Array.isArray(parts) && parts.length === 5 && parts.every((part) => typeof part === "string")) {
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
