import { InvalidArgumentError } from "commander";
import { parseDuration } from "./durations.js";
import { parseTick } from "./ticks.js";

/** @throws what the parser of arguments makes one line of. */
export function duration(text: string): number {
  const ms = parseDuration(text);
  if (ms === undefined)
    throw new InvalidArgumentError("Give a number and a unit of ms, s, m, h or d: 500ms, 30s, 1h30m.");
  return ms;
}

export function tick(text: string): number {
  const key = parseTick(text);
  if (key !== undefined) return key;
  throw new InvalidArgumentError(
    "Give a whole number or a date with its zone, such as 2026-05-04T10:00Z: ticks have an order. A text that is done once " +
      "can be a part of NAME.",
  );
}

export function wholeNumber(least: number, most: number): (text: string) => number {
  return (text) => {
    const value = /^\d+$/.test(text) ? Number(text) : Number.NaN;
    if (value >= least && value <= most) return value;
    throw new InvalidArgumentError(`Give a whole number from ${least} to ${most}.`);
  };
}
