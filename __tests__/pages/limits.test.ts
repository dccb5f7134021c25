import { readFileSync } from "node:fs";
import { runInNewContext } from "node:vm";
import { expect, test } from "@jest/globals";
import { pageAt } from "../support/pages.js";

const LIMITS = pageAt("docs/reference/limits.md").text.split("\n");

/** How a row of the page begins, the constants in lib/ that it gives, and in what unit, if it is not theirs. */
const SAYS: readonly (readonly [row: string, file: string, constants: readonly string[], unit?: number])[] = [
  ["a lock's name", "options/table.ts", ["MAX_NAME_BYTES"]],
  ["a token of `handOff()`", "holding/hand-off-token.ts", ["MOST_CHARACTERS"]],
  ["`data` of a lock", "dynamodb/data.ts", ["MAX_DATA_BYTES", "ROW_BYTES"], 1_024],
  ["`data` of several", "dynamodb/data.ts", ["MAX_TRANSACTION_BYTES"], 1_024 * 1_024],
  ["the result of `singleFlight()`", "dynamodb/data.ts", ["MAX_RESULT_BYTES"], 1_024],
  ["nesting", "dynamodb/data.ts", ["MAX_DEPTH"]],
  ["a number in `data`", "dynamodb/data.ts", ["MAX_DIGITS"]],
  ["permits of a semaphore", "options/semaphore.ts", ["MOST_PERMITS"]],
  ["permits that one call takes", "options/calls.ts", ["MOST_WEIGHT"]],
  ["names in `lockAll()`", "options/lock-all.ts", ["MAX_NAMES"]],
  ["items of your own", "dynamodb/guards.ts", ["MOST_ITEMS"]],
  ["renewals in one request", "dynamodb/renewal-batches.ts", ["MOST"]],
  ["renewals in one request", "session/agenda.ts", ["TOGETHER"]],
  ["names whose rows", "session/sightings.ts", ["MOST_REMEMBERED"]],
  ["open `LockTable`s", "lock-table.ts", ["MANY"]],
  ["requests to one table", "session/requests.ts", ["MOST_WIDTH", "LEAST_WIDTH"]],
  ["connections of the default client", "dynamodb/connections.ts", ["IDLE_MS"], 1_000],
  ["connecting", "dynamodb/connections.ts", ["CONNECT_MS"]],
  ["the first attempt", "session/retry.ts", ["LONGEST_ATTEMPT_MS"]],
  ["the first attempt", "session/requests.ts", ["LEAST_ATTEMPT_MS"]],
  ["each further attempt", "session/retry.ts", ["LONGEST_ATTEMPT_MS"]],
  ["the pause before a retry", "session/retry.ts", ["FIRST_PAUSE_MS", "LONGEST_PAUSE_MS"]],
  ["a wait or a try", "taking/call.ts", ["FIRST_ANSWER_MS"]],
  ["an endpoint that answers", "dynamodb/table-sign.ts", ["PATIENCE_MS"]],
  ["a call that waits for long", "taking/stuck.ts", ["LONG_MS"]],
  ["a process that lets others in", "protocol/mark.ts", ["MOST_NEED_MS"]],
];

test.each(SAYS)("limits.md gives of %s what %s has", (row, file, constants, unit = 1) => {
  const said = LIMITS.find((line) => line.startsWith(`| ${row}`)) ?? "";
  const numbers = [...said.matchAll(/\d+(?: \d{3})*/g)].map(([number]) => Number(number.replaceAll(" ", "")));
  for (const constant of constants) expect(numbers).toContain(constantOf(constant, file) / unit);
});

test("limits.md gives the least and the most of the options whose check has them", () => {
  const shape = ["options/mutex.ts", "options/calls.ts"].map(source).join("");
  const bounds = [...shape.matchAll(/^ +(\w+): z\.optional\(duration(?:OrForever)?\(([\d_]+)(?:, ([\d_]+))?/gm)];
  expect(bounds.length).toBeGreaterThan(10);
  const rows = LIMITS.filter((line) => line.startsWith("| `"));
  for (const [, option = "", least = "", most] of bounds) {
    if (["pollMs", "timeoutMs", "safetyMarginMs"].includes(option)) continue; // of no interest; or it has another bound
    const row = rows.find(
      (line) => line.split(" | ")[0]?.includes(option) && (most === undefined || line.includes("540 000")),
    );
    expect([option, row?.split(" | ")[1]]).toEqual([
      option,
      Number(least.replaceAll("_", "")).toLocaleString("fr").replace(/\s/g, " "),
    ]);
  }
});

/** The value of a constant that is a number, or an expression of such constants of its file. */
function constantOf(name: string, file: string): number {
  const [, expression = ""] = new RegExp(`^(?:export )?const ${name} = (.+);$`, "m").exec(source(file)) ?? [];
  const known = expression.replaceAll(/\b[A-Z][A-Z_]+\b/g, (other) => String(constantOf(other, file)));
  const value: unknown = runInNewContext(known);
  if (typeof value !== "number") throw new Error(`lib/${file} has no number ${name}`);
  return value;
}

function source(file: string): string {
  return readFileSync(`lib/${file}`, "utf8");
}
