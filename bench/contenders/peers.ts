import { createRequire } from "node:module";
import { join } from "node:path";

/** The folder `bench/`, whose own package.json brings the peers. This file runs from `.jest/bench/contenders/`. */
export const BENCH_FOLDER: string = join(import.meta.dirname, "..", "..", "..", "bench");

const requireHere = createRequire(join(BENCH_FOLDER, "package.json"));

/** One of the peers, which have no types here: the library's own checks must not need them. */
// biome-ignore lint/suspicious/noExplicitAny: its users say what they take from it
export function requirePeer(name: string): any {
  return requireHere(name);
}
