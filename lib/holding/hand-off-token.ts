import { createHash } from "node:crypto";
import { LockConfigError } from "../errors.js";
import type { Address } from "../protocol/addresses.js";
import type { TableId } from "../session/session.js";

const PREFIX = "dynamutex-2.";

/** More than the longest key needs, each character of which may be escaped. */
const MOST_CHARACTERS = 32_768;

/**
 * The uuid on a row that is handed off. Everybody who reads the table sees it, and it opens nothing: the secret that gives it
 * is in the token alone.
 */
export function uuidOf(secret: string): string {
  return createHash("sha256").update(secret).digest("hex");
}

/**
 * A string of letters, digits, `-`, `_` and `.`: fit for a message and a header. It says which row it is for, and opens it;
 * whatever else there is to know is on the row.
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

/** An error ends up in logs, and a token that was spoiled on its way is as good as whole to whoever can mend it. */
function shown(token: unknown): string {
  return typeof token === "string" ? `${token.slice(0, PREFIX.length)}…` : typeof token;
}

/** A table may be given by its ARN, by one host and not by another. */
function plainName(tableName: string): string {
  return tableName.split(":table/")[1] ?? tableName;
}
