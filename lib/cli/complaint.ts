import type { LockConfigError } from "../index.js";
import { Failure } from "./failure.js";

/** What the library's options are called here. */
const FLAGS: Readonly<Record<string, string>> = {
  ttlMs: "--ttl",
  waitMs: "--wait",
  holdAtLeastMs: "--at-least",
  everyMs: "--every",
  once: "--once",
  permits: "--permits",
  fair: "--fair",
  uuid: "--uuid",
  name: "NAME",
  tableName: "--table",
  keyPrefix: "--key-prefix",
};

/** What the library advises a program to do, and what it means at the prompt. */
const ADVICE: readonly (readonly [RegExp, string])[] = [
  [
    /`await locks\.create\(\)` creates it.*? in docs\/table\.md/,
    "`dynamutex create-table` creates it, or correct --table or --region",
  ],
  [/`await locks\.create\(\)` creates it/, "`dynamutex create-table` creates it"],
  [/set AWS_REGION, or pass a `client` that has one/, "set AWS_REGION, or give --region"],
  [/, or pass a `client` that has credentials/, ""],
  [/set keys: \{.*?\} on every host/, "give --keys PARTITION,SORT,TTL as the table has them"],
  [/leave the option keys out on every host/, "leave --keys out"],
  [/the option keys\.\w+/g, "--keys"],
];

/** One line that says what went wrong and what to do. */
export function complaintOf(error: unknown): string {
  if (error instanceof Failure) return error.message;
  if (!(error instanceof Error)) return String(error);
  const { option } = error as Partial<LockConfigError>;
  const message = option === undefined ? error.message : error.message.replace(option, flagOf(option));
  return inOurWords(message) || error.name;
}

/** A message of the library, for somebody at the prompt. */
export function inOurWords(message: string): string {
  return ADVICE.reduce((text, [theirs, ours]) => text.replace(theirs, ours), message);
}

function flagOf(option: string): string {
  return option.startsWith("keys") ? "--keys" : (FLAGS[option] ?? option);
}
