import { EXIT } from "./failure.js";
import { type Found, findLocks, isTaken, type LockView, leftOf } from "./lock-view.js";
import { onTable, type TableArguments } from "./open-table.js";
import { showTick } from "./options.js";
import { print, printable, toJson } from "./output.js";

/** Shows who holds a lock. @returns 0 if somebody does, or nobody else can take it yet; 1 if it is free. */
export async function inspect(name: string, options: TableArguments & { readonly json?: boolean }): Promise<number> {
  const found = await onTable(options, (table) => findLocks(table, name));
  print(options.json ? `${toJson({ name, ...found })}\n` : textOf(name, found));
  return found.locks.some(isTaken) ? EXIT.done : EXIT.no;
}

function textOf(name: string, { locks, waiters }: Found): string {
  if (locks.length === 0) return `${printable(name)} is free: nothing is recorded under this name\n`;
  const queue = waiters.map(({ kind, owner, since, problem }) =>
    problem === undefined
      ? line("waits", `${printable(owner)}, for ${kind}, since ${since.toISOString()}`)
      : line("problem", printable(problem)),
  );
  return [...locks.map(lockText), ...queue].join("");
}

const line = (label: string, text: string): string => `  ${label.padEnd(8)} ${text}\n`;

/** What has become of a tick, by whether a run of it has succeeded. */
const TICK_STATES = {
  true: "the tick has succeeded",
  false: "the tick is due until it succeeds",
  undefined: "only untilSuccess records whether it succeeded",
} as const;

function runText({ lastRun, succeeded }: LockView): string {
  const run = lastRun && `by ${printable(lastRun.owner)}, from ${lastRun.began.toISOString()}; `;
  return `${run ?? ""}${TICK_STATES[`${succeeded}`]}`;
}

function lockText(lock: LockView): string {
  const { name, kind, state, uuid, owner, acquired, expires, tick, attempts, data, problem, permits } = lock;
  const title = `${printable(name)}: ${kind}, ${state}\n`;
  if (problem !== undefined) return title + line("problem", printable(problem));
  return [
    title,
    line("owner", `${printable(owner)}${uuid === undefined || state === "handed-off" ? ", the last one" : ""}`),
    uuid === undefined ? "" : line("uuid", printable(uuid)),
    permits === undefined ? "" : line("permits", permits.join(", ")),
    line("since", acquired.toISOString()),
    state === "free" ? "" : line("expires", `${expires.toISOString()}, ${leftOf(lock)}`),
    tick === undefined ? "" : line("tick", showTick(tick)),
    tick === undefined ? "" : line("last run", runText(lock)),
    attempts === undefined ? "" : line("attempts", String(attempts)),
    data === undefined ? "" : line("data", toJson(data)),
  ].join("");
}
