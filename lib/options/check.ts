import * as z from "zod/mini";
import { LockConfigError } from "../errors.js";
import type { LockData } from "../lock-info.js";
import { MAX_TIMER_MS } from "../time/clock.js";
import {
  aliasesOf,
  clientOptionNear,
  elsewhere,
  insteadOf,
  LONG_IN_SECONDS,
  nearest,
  unitOf,
  withoutSecrets,
} from "./near-miss.js";
import type { OptionsCheck } from "./options-check.js";

/** The options of a call that was given none: they are not checked. */
export const NONE: Readonly<Record<string, never>> = Object.freeze({});

/** Calls `make` at the first use and keeps the result. Schemas are made this way, so that an import makes none. */
export function lazily<T>(make: () => T): () => T {
  let made: T | undefined;
  return () => {
    made ??= make();
    return made;
  };
}

/** A schema for each option, of the type that the interface gives it. */
export type Shape<Options> = { readonly [Name in keyof Options]-?: z.ZodMiniType<Options[Name]> };

/** A shape whose schemas accept all that the interface does: {@link Shape} alone would take one that accepts less. */
export type Exactly<Options, Given> = {
  readonly [Name in keyof Given]: Name extends keyof Options
    ? [Options[Name]] extends [z.output<Given[Name]>]
      ? unknown
      : never
    : never;
};

/** A shape of these options, as the compiler has checked. */
export function exactly<Options>(): <Given extends Shape<Options>>(
  shape: Given & Exactly<Options, Given>,
) => Shape<Options> {
  return (shape) => shape;
}

/**
 * The compiler refuses a shape that leaves an option of the interface out, has one more, or accepts more or less than
 * the interface says.
 * @param takers what takes these options: the error for one that is given elsewhere says so.
 * @param remedies for options that are not taken here, where that does not say enough.
 */
export function optionsCheck<Options extends object, Given extends Shape<NoInfer<Options>>>(
  takers: readonly string[],
  shape: () => Given & Exactly<NoInfer<Options>, Given>,
  remedies: Readonly<Record<string, string>> = {},
): OptionsCheck<Options> {
  const shapeOf = lazily(shape);
  TAKERS.push({ takers, names: () => Object.keys(shapeOf()) });
  const check = valueCheck(() => objectOf<Options>(shapeOf(), remedies), "options");
  // No options at all are checked as an empty object: the error then names an option that is required.
  return (options = {} as Options) => {
    if (options !== NONE) check(options);
    return options;
  };
}

const isObject = (value: unknown): value is object => Object.prototype.toString.call(value) === "[object Object]";

/** An object of strings, under names of the caller's choice. */
export const strings = (): z.ZodMiniType<Readonly<Record<string, string>>> =>
  z.custom<Readonly<Record<string, string>>>(
    (value) => isObject(value) && Object.values(value).every((member) => typeof member === "string"),
    "must be an object whose values are strings",
  );

/**
 * An object with these options and no others, except undefined ones, which say nothing. An option that is missing may be the one
 * that is misspelt: that one is told first.
 */
export function objectOf<Options extends object>(
  shape: Shape<NoInfer<Options>>,
  remedies: Readonly<Record<string, string>> = {},
): z.ZodMiniType<Options> {
  const known = Object.keys(shape);
  return z
    .custom<Options>(isObject, { error: () => `must be an object with options${requiredOf(shape)}`, abort: true })
    .check(({ value, issues }) => {
      const given = Object.entries(value).filter(([, option]) => option !== undefined);
      const [unknown, what] = given.find(([name]) => !known.includes(name)) ?? [];
      if (unknown !== undefined) {
        const message = Object.hasOwn(remedies, unknown) ? remedies[unknown] : unknownOption(unknown, what, known);
        issues.push({ code: "custom", input: value, path: [unknown], message });
      }
      for (const [name, schema] of Object.entries<z.ZodMiniType>(shape)) {
        const { error } = schema.safeParse(value[name as keyof Options]);
        const missing = error !== undefined && value[name as keyof Options] === undefined ? "is required, and " : "";
        for (const { message, path } of error?.issues ?? []) {
          issues.push({ code: "custom", input: value, path: [name, ...path], message: `${missing}${message}` });
        }
      }
    });
}

/** What is to be among the options, for an error. */
function requiredOf(shape: object): string {
  const required = Object.entries(shape as Readonly<Record<string, z.ZodMiniType>>).filter(
    ([, schema]) => !schema.safeParse(undefined).success,
  );
  return required.length === 0 ? "" : `, of which ${required.map(([name]) => name).join(" and ")} is required`;
}

/** Everything that takes options. */
const TAKERS: { readonly takers: readonly string[]; readonly names: () => readonly string[] }[] = [];

/** What to do about an option that does not exist here. @param here the names of the options that do. */
function unknownOption(name: string, value: unknown, here: readonly string[]): string {
  const aliases = aliasesOf(name);
  const meant = nearest(name, here) ?? aliases.find((option) => here.includes(option));
  if (meant !== undefined) return `is not an option: did you mean ${meant}? ${unitOf(meant, name, value)}`.trimEnd();
  const takers = takersOf(name);
  if (takers !== "") return `is not an option here, but one of ${takers}`;
  const instead = insteadOf(name);
  if (instead !== undefined) return instead;
  const everywhere = TAKERS.flatMap(({ names }) => names());
  const alias = aliases.find((option) => everywhere.includes(option));
  const ofClient = alias === undefined ? clientOptionNear(name) : undefined;
  if (ofClient !== undefined) return elsewhere(ofClient);
  const other = alias ?? nearest(name, everywhere);
  if (other === undefined) return "is not an option: check its spelling";
  const unit = unitOf(other, name, value);
  return `is not an option here: ${other} is one of ${takersOf(other)}${unit === "" ? "" : `. ${unit}`}`;
}

/** Everything that takes an option of this name. */
function takersOf(name: string): string {
  return [...new Set(TAKERS.flatMap(({ takers, names }) => (names().includes(name) ? takers : [])))].join(", ");
}

/** What is wrong with half of a surrogate pair: DynamoDB would store another character, and two strings would be one. */
export const NOT_WELL_FORMED = "must not contain half of a surrogate pair, which DynamoDB does not store as it is";

/** Whether a string is Unicode, as DynamoDB stores it: without a surrogate that stands alone. */
export function isWellFormed(value: string): boolean {
  return !/\p{Surrogate}/u.test(value);
}

/** A string that DynamoDB stores as it is. */
export const text = (): z.ZodMiniType<string> =>
  z
    .custom<string>((value) => typeof value === "string", { error: "must be a string", abort: true })
    .check(z.refine(isWellFormed, NOT_WELL_FORMED));

/**
 * What is wrong with a name that a template made of something which is no value: it has `undefined` or `NaN` as a part of its own, between
 * other characters than letters and digits, or an object anywhere. Undefined for any other name.
 */
export function ofNoValue(name: string): string | undefined {
  const [, word] = /(\[object \w+\]|(?<![\p{L}\p{N}])(?:undefined|NaN)(?![\p{L}\p{N}]))/u.exec(name) ?? [];
  if (word === undefined) return undefined;
  return `was made of ${NO_VALUES[word] ?? NO_VALUES[AN_OBJECT]}: one lock would stand for all of them. Use, for example, the id of what is locked`;
}

const AN_OBJECT = "[object Object]";

/** What it was, by what a template makes of it. */
const NO_VALUES: Readonly<Record<string, string>> = {
  undefined: "undefined, which is a value that is missing",
  NaN: "NaN, which is a number that could not be read or computed",
  "[object Promise]": "a promise that was not awaited",
  [AN_OBJECT]: "an object",
};

/** A string with nothing in it that {@link ofNoValue} finds. */
export const isOfValues = <Name>(): z.core.$ZodCheck<Name> =>
  z.refine<Name>((value) => typeof value !== "string" || ofNoValue(value) === undefined, {
    error: ({ input }) => ofNoValue(String(input)) ?? "",
  });

/** A string that is a lock's name, or the beginning of one. */
export const partOfName = (): z.ZodMiniType<string> => text().check(isOfValues());

/** Whole milliseconds. Default: as many as a timer can run. @param why there may be no more than `most`. */
export const duration = (
  least: number,
  most: number = MAX_TIMER_MS,
  why = "the longest that a timer can run",
): z.ZodMiniType<number> =>
  z
    .custom<number>(Number.isInteger, { error: "must be a whole number of milliseconds", abort: true })
    .check(
      z.minimum(least, { error: ({ input }) => `must be at least ${least} ms${inSeconds(input, least)}` }),
      z.maximum(most, `must be at most ${most} ms, ${why}`),
    );

/** The same, or Infinity. */
export const durationOrForever = (least: number): z.ZodMiniType<number> => {
  const finite = duration(least);
  return z.custom<number>((value) => value === Number.POSITIVE_INFINITY || z.safeParse(finite, value).success, {
    error: ({ input }) =>
      `must be Infinity or a whole number of milliseconds from ${least} to ${MAX_TIMER_MS}${inSeconds(input, least)}`,
  });
};

/**
 * A duration for which nobody needs so odd a number of milliseconds as a long time has seconds.
 * @param others numbers of seconds of which the same is true here.
 */
export const notInSeconds = <Value extends number>(others: readonly number[] = []): z.core.$ZodCheck<Value> =>
  z.refine<Value>((value) => ![...LONG_IN_SECONDS, ...others].includes(value), {
    error: ({ input }) =>
      `is in milliseconds: did you mean ${Number(input) * 1_000}? Otherwise, ${Number(input) + 1} will do`,
  });

/** Asked where a value is too small in milliseconds, and would not be as seconds. */
function inSeconds(value: unknown, least: number): string {
  const ms = Number(value) * 1_000;
  return typeof value === "number" && value > 0 && value < least && ms >= least ? `: did you mean ${ms}?` : "";
}

export const flag = (): z.ZodMiniType<boolean | undefined> =>
  z.optional(z.custom<boolean>((value) => typeof value === "boolean", "must be true or false"));

/** An object with these methods. Its class is not compared: it may come from another copy of its package. */
export const withMethods = <T>(what: string, methods: readonly string[]): z.ZodMiniType<T> =>
  z.custom<T>((value) => methods.every((method) => typeof Object(value)[method] === "function"), `must be ${what}`);

export const signal = (): z.ZodMiniType<AbortSignal | undefined> =>
  z.optional(withMethods<AbortSignal>("an AbortSignal", ["addEventListener", "throwIfAborted"]));

export const lockData = (): z.ZodMiniType<LockData> =>
  z.custom<LockData>(
    (value) => typeof value === "object" && value !== null && !Array.isArray(value),
    "must be an object whose properties DynamoDB can store",
  );

/** A function that throws a {@link LockConfigError} for the first part of a value that does not fit. `what` is its name. */
export function valueCheck(make: () => z.ZodMiniType, what: string): (value: unknown) => void {
  const schema = lazily(make);
  return (value) => {
    const [issue] = schema().safeParse(value).error?.issues ?? [];
    if (issue === undefined) return;
    const { path } = issue;
    const refused = path.reduce<unknown>((inner, key) => (inner as Record<PropertyKey, unknown>)[key], value);
    const option = path.map(String).join(".") || what;
    throw new LockConfigError(option, withoutSecrets(option, refused), issue.message);
  };
}
