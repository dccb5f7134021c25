import { z } from "zod/v3";
import { LockConfigError } from "../errors.js";
import type { LockData } from "../lock-info.js";
import { MAX_TIMER_MS } from "../time/clock.js";

/** What a call without options has: nothing in it to check. */
export const NONE: Readonly<Record<string, never>> = Object.freeze({});

/** Made when it is first asked for: a program that starts has better things to do, and needs few of them. */
export function lazily<T>(make: () => T): () => T {
  let made: T | undefined;
  return () => {
    made ??= make();
    return made;
  };
}

/** Whole milliseconds. */
export const duration = (least: number): z.ZodNumber =>
  z
    .number({ invalid_type_error: "must be a number of milliseconds" })
    .int("must be a whole number of milliseconds")
    .min(least, `must be at least ${least} ms`)
    .max(MAX_TIMER_MS, `must be at most ${MAX_TIMER_MS} ms, the longest that a timer can run`);

/** Whole milliseconds, or Infinity. */
export const durationOrForever = (least: number): z.ZodType<number> =>
  z.union([z.literal(Number.POSITIVE_INFINITY), duration(least)], {
    errorMap: () => ({
      message: `must be Infinity or a whole number of milliseconds from ${least} to ${MAX_TIMER_MS}`,
    }),
  });

/** On or off. */
export const flag = (): z.ZodOptional<z.ZodBoolean> =>
  z.boolean({ invalid_type_error: "must be true or false" }).optional();

/** Something that is told by what it can do, because it may come from another copy of its package. */
export const anObject = (what: string, methods: readonly string[]): z.ZodType<object> =>
  z.custom<object>(
    (value) =>
      typeof value === "object" &&
      value !== null &&
      methods.every((method) => typeof (value as Record<string, unknown>)[method] === "function"),
    `must be ${what}`,
  );

export const signal = (): z.ZodOptional<z.ZodType<object>> =>
  anObject("an AbortSignal", ["addEventListener", "throwIfAborted"]).optional();

export const lockData = (): z.ZodType<LockData> =>
  z.custom<LockData>(
    (value) => typeof value === "object" && value !== null && !Array.isArray(value),
    "must be an object whose properties DynamoDB can store",
  );

/** @throws {@link LockConfigError} naming what does not fit the schema, `what` if that is the value itself. */
export function check(schema: () => z.ZodTypeAny, value: unknown, what: string): void {
  if (value === NONE) return;
  const result = schema().safeParse(value);
  if (result.success) return;
  const issue = result.error.issues[0];
  if (issue === undefined) return;
  const path = [...issue.path];
  if (issue.code === "unrecognized_keys") {
    path.push(issue.keys[0] ?? "");
    throw new LockConfigError(path.join("."), at(value, path), "is not an option: check its spelling");
  }
  const isNoObject = issue.code === "invalid_type" && issue.expected === "object";
  const remedy = isNoObject ? "must be an object with options" : issue.message;
  throw new LockConfigError(path.join(".") || what, at(value, path), remedy);
}

function at(value: unknown, path: readonly (string | number)[]): unknown {
  return path.reduce<unknown>((inner, key) => (inner as Record<string | number, unknown> | undefined)?.[key], value);
}
