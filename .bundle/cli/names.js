import { EXIT } from "./failure.js";
import { onTable } from "./open-table.js";
import { print, printable } from "./output.js";
const MOST_MS = 1_500;
const MOST_NAMES = 200;
export async function names(options) {
    const found = new Set();
    await onTable(options, async ({ locks, clock }) => {
        const end = new AbortController();
        const cancel = clock.alarm(MOST_MS, () => end.abort());
        try {
            for await (const { name } of locks.list({ prefix: options.prefix, kept: true, signal: end.signal })) {
                found.add(name);
                if (found.size === MOST_NAMES)
                    break;
            }
        }
        finally {
            cancel();
        }
    }).catch(() => undefined);
    print([...found]
        .sort()
        .map((name) => `${printable(name)}\n`)
        .join(""));
    return EXIT.done;
}
