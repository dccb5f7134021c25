import type { Address } from "../../../lib/protocol/addresses.js";
import { decodedToken, encodedToken } from "../../support/tokens.js";

/**
 * What somebody sends who has no token for a lock: one made of the uuid that the row shows; that of another lock, with this
 * one's name; one of this lock that was edited; one of an earlier hand-off of the very row, which is whole.
 */
export type Forgery = "seen" | "foreign" | "edited" | "old";

const SECRET = 4;

/** The row that a token is for. */
export function rowOfToken(token: string): Address {
  const [, , name = "", sort = ""] = decodedToken(token);
  return { name, sort };
}

export function forgedOf(token: string, uuid: string): string {
  return encodedToken(decodedToken(token).with(SECRET, uuid));
}

/** The secret of one in the token of another. */
export function foreignOf(token: string, other: string): string {
  return forgedOf(token, decodedToken(other).at(SECRET) ?? "");
}

/** @param choice which of the edits. */
export function editedOf(token: string, choice: number): string {
  const parts = decodedToken(token);
  const secret = parts.at(SECRET) ?? "";
  const edits: readonly unknown[] = [
    [...parts, 9e15],
    parts.with(SECRET, `${secret}0`),
    parts.with(SECRET, secret.toUpperCase()),
    parts.with(SECRET, ""),
    { ...parts },
  ];
  return encodedToken(edits[choice % edits.length]);
}
