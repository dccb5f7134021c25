import { isatty } from "node:tty";
import type { LockInfo } from "../index.js";
import { EXIT } from "./failure.js";
import { inPlace, linesOf } from "./lock-text.js";
import { countWaiters, inOrder, type LockView, viewOf } from "./lock-view.js";
import { type OpenTable, onTable, type TableArguments } from "./open-table.js";
import { arrayToJson, print, printable } from "./output.js";

export interface LsOptions extends TableArguments {
  readonly prefix?: string;
  readonly kept?: boolean;
  readonly watch?: boolean;
  readonly json?: boolean;
}

/** The pause between two looks: each of them reads the whole table. */
const WATCH_MS = 2_000;

/** Lists locks, once or for ever. */
export async function ls(options: LsOptions): Promise<number> {
  const show = options.json ? showJson : options.watch && isatty(1) ? showInPlace : showText;
  return await onTable(options, async (table) => {
    for (;;) {
      show(await look(table, options), options);
      if (!options.watch) return EXIT.done;
      await table.clock.sleep(WATCH_MS);
    }
  });
}

async function look({ locks, clock, names }: OpenTable, { prefix, kept }: LsOptions): Promise<readonly LockView[]> {
  const listed: LockInfo[] = [];
  for await (const lock of locks.list({ prefix, kept })) listed.push(lock);
  const waiting = names.sort !== undefined ? await countWaiters(locks, listed) : undefined;
  const bounds = clock.wall();
  return inOrder(listed.map((lock) => viewOf(lock, bounds, waiting?.get(lock))));
}

type Show = (views: readonly LockView[], options: LsOptions) => void;

const showJson: Show = (views) => print(`${arrayToJson(views)}\n`);

const showText: Show = (views, { watch }) => {
  print(`${linesOf(views).join("\n")}\n${watch ? "\n" : ""}`);
};

const showInPlace: Show = (views, { table }) => {
  const [rows, columns] = [process.stdout.rows || 24, process.stdout.columns || 80]; // a terminal may not know: 0
  const title = `${views.length} locks in table ${printable(table ?? "")}, every ${WATCH_MS / 1_000} s, until Ctrl-C`;
  print(inPlace([title.slice(0, columns), "", ...linesOf(views, columns)], rows));
};
