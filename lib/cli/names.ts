import { EXIT } from "./failure.js";
import { onTable, type TableArguments } from "./open-table.js";
import { print, printable } from "./output.js";

/** A completion is waited for: it reads no more of a large table than it can in this time. */
const MOST_MS = 1_500;

/** More names than this help nobody. */
const MOST_NAMES = 200;

/** Prints names of locks for a completion, one a line: of those that are taken or kept, as many as are found in a moment. */
export async function names(options: TableArguments & { readonly prefix?: string }): Promise<number> {
  const found = new Set<string>();
  await onTable(options, async ({ locks, clock }) => {
    const end = new AbortController();
    const cancel = clock.alarm(MOST_MS, () => end.abort());
    try {
      for await (const { name } of locks.list({ prefix: options.prefix, kept: true, signal: end.signal })) {
        found.add(name);
        if (found.size === MOST_NAMES) break;
      }
    } finally {
      cancel();
    }
  }).catch(() => undefined); // a prompt is no place for an error
  print(
    [...found]
      .sort()
      .map((name) => `${printable(name)}\n`)
      .join(""),
  );
  return EXIT.done;
}
