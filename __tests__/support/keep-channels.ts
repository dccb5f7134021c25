import diagnosticsChannel, { type Channel, channel } from "node:diagnostics_channel";
import { readFileSync } from "node:fs";
import { join } from "node:path";

/**
 * Keeps the library's channels alive for as long as the process lives. Jest runs test files one after the other in one process,
 * each with a library of its own. Node 20 forgets a channel that is in use where another of its name was collected before:
 * whoever subscribes then gets a third one, on which nothing is told.
 */
const KEPT = Symbol.for("dynamutex.tests.channels");
const shared = diagnosticsChannel as { [KEPT]?: readonly Channel[] };
shared[KEPT] ??= [
  ...readFileSync(join(process.cwd(), "lib", "diagnostics.ts"), "utf8").matchAll(/"(dynamutex:[\w-]+)"/g),
]
  .map(([, name = ""]) => name)
  .map((name) => channel(name));
