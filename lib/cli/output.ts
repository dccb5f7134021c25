import { write, writeSync } from "node:fs";
import { asGiven } from "./given.js";

/**
 * Writes one line to stderr, before it returns. It does not touch `process.stderr`, which would make a pipe non-blocking
 * that the command under the lock writes to as well.
 */
export function complain(line: string): void {
  let rest = lineOf(line);
  while (rest.length > 0) {
    try {
      rest = rest.subarray(writeSync(2, rest));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EAGAIN") return; // nobody reads it
    }
  }
}

/**
 * The same while a command runs under the lock, without waiting for who reads it: a full pipe, or a terminal that Ctrl-S has
 * stopped, must hold up neither renewals nor the end of the command.
 */
export function mention(line: string): void {
  write(2, lineOf(line), () => undefined);
}

function lineOf(line: string): Buffer {
  return Buffer.from(`dynamutex: ${printable(asGiven(line).replace(/\s*\n\s*/g, " "))}\n`);
}

/**
 * Text of others, such as a name or an owner, for a terminal: control characters, with which it could move the cursor and
 * draw over what was shown, are shown as escapes.
 */
export function printable(text: string): string {
  return text.replace(/\p{Cc}/gu, (character) => {
    const escaped = JSON.stringify(character).slice(1, -1);
    // JSON leaves DEL and C1 as they are.
    return escaped === character ? `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}` : escaped;
  });
}

/** Writes to stdout. A reader that has had enough, such as `head`, ends the command without a word. */
export function print(text: string): void {
  if (process.stdout.listenerCount("error") === 0) process.stdout.on("error", stopPrinting);
  process.stdout.write(text);
}

function stopPrinting(error: NodeJS.ErrnoException): void {
  if (error.code !== "EPIPE") complain(error.message);
  process.exit(error.code === "EPIPE" ? 0 : 1);
}

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
