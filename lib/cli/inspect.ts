import { EXIT } from "./failure.js";
import { leftOf } from "./lock-text.js";
import { type Found, findLocks, isTaken, type LockView } from "./lock-view.js";
import { onTable, type TableArguments } from "./open-table.js";
import { showTick } from "./options.js";
import { print, printable, toJson } from "./output.js";

export interface InspectOptions extends TableArguments {
  readonly json?: boolean;
}

/** Shows who holds a lock. @returns 0 if somebody does, or nobody else can take it yet; 1 if it is free. */
export async function inspect(name: string, options: InspectOptions): Promise<number> {
  const found = await onTable(options, (table) => findLocks(table, name));
  print(options.json ? `${toJson({ name, ...found })}\n` : textOf(name, found));
  return found.locks.some(isTaken) ? EXIT.done : EXIT.no;
}

function textOf(name: string, { locks, waiters }: Found): string {
  if (locks.length === 0) return `${printable(name)} is free\n`;
  const queue = waiters.map(({ kind, owner, since, problem }) =>
    problem === undefined
      ? `  waits    ${printable(owner)}, for ${kind}, since ${since.toISOString()}\n`
      : `  problem  ${printable(problem)}\n`,
  );
  return locks.map(lockText).join("") + queue.join("");
}

/** What has become of a tick that is run until it succeeds, by whether it has. */
const TICK_STATES = { true: ", which has succeeded", false: ", due until it succeeds", undefined: "" } as const;

function lockText(lock: LockView): string {
  const { name, kind, state, uuid, owner, acquired, expires, tick, attempts, succeeded, data, problem } = lock;
  if (problem !== undefined) return `${printable(name)}: ${kind}, ${state}\n  problem  ${printable(problem)}\n`;
  const lines = [
    `${printable(name)}: ${kind}, ${state}`,
    `  owner    ${printable(owner)}${uuid === undefined || state === "handed-off" ? ", the last one" : ""}`,
    ...(uuid === undefined ? [] : [`  uuid     ${printable(uuid)}`]),
    `  since    ${acquired.toISOString()}`,
    `  expires  ${expires.toISOString()}, ${leftOf(lock)}`,
    ...(tick === undefined ? [] : [`  tick     ${showTick(tick)}${TICK_STATES[`${succeeded}`]}`]),
    ...(attempts === undefined ? [] : [`  attempts ${attempts}`]),
    ...(data === undefined ? [] : [`  data     ${toJson(data)}`]),
  ];
  return `${lines.join("\n")}\n`;
}
