import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { BENCH_FOLDER } from "./contenders/peers.js";
import type { Outcome } from "./results.js";

export const ROOT: string = join(BENCH_FOLDER, "..");
const RECORD = join(ROOT, "docs", "design", "bench", "measured.json");

/** One workload's figures, with what they were measured on. */
export interface Measured extends Outcome {
  readonly workload: string;
  readonly date: string;
  readonly commit: string;
  readonly machine: string;
}

export function stamp(): Pick<Measured, "date" | "commit" | "machine"> {
  const [major, minor] = process.versions.node.split(".");
  return {
    date: new Date().toISOString().slice(0, 10),
    commit: git("rev-parse", "--short=7", "HEAD") + (git("status", "--porcelain", "lib") === "" ? "" : " and changes"),
    machine: `${availableParallelism()} cores, DynamoDB Local 3.3.0 in-memory, Node ${major}.${minor}`,
  };
}

/** Puts these figures in the place of earlier ones. @returns all. */
export function remember(measured: readonly Measured[]): readonly Measured[] {
  const earlier: readonly Measured[] = existsSync(RECORD) ? JSON.parse(readFileSync(RECORD, "utf8")) : [];
  const all = [...earlier.filter(({ workload }) => !measured.some((one) => one.workload === workload)), ...measured];
  writeFileSync(RECORD, `${JSON.stringify(all, roundedTo4, 2)}\n`);
  return all;
}

function git(...args: readonly string[]): string {
  return execFileSync("git", args, { cwd: ROOT, encoding: "utf8" }).trim();
}

function roundedTo4(_key: string, value: unknown): unknown {
  return typeof value === "number" && Number.isFinite(value) ? Number(value.toPrecision(4)) : value;
}
