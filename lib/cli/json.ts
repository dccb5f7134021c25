import { printable } from "./output.js";

/** An array with a line for each of its members, for `grep` and `jq` alike. */
export const arrayToJson = (members: readonly unknown[]): string =>
  members.length === 0 ? "[]" : `[\n${members.map(toJson).join(",\n")}\n]`;

/** A value as one line of JSON, without control characters. Dates are ISO; what DynamoDB can store and JSON cannot becomes a string or an array. */
export function toJson(value: unknown): string {
  const json = JSON.stringify(value, (_, member: unknown) => {
    if (typeof member === "bigint") return member.toString();
    if (member instanceof Set) return [...member];
    if (member instanceof Uint8Array) return Buffer.from(member).toString("base64");
    return member;
  });
  return printable(json);
}
