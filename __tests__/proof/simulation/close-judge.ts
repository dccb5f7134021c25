import { LockLostError } from "../../../lib/errors.js";
import type { Coverage } from "./coverage.js";
import { type Holding, Violation } from "./invariants.js";

/** A close that is under way. */
export interface Closing {
  readonly startedAt: number;
  readonly drainMs: number;
  /** No section is revoked before. */
  readonly drainEnds: number;
  /** Settles with the close, if the sections that run await it before they end; undefined if they do not. */
  readonly awaited: Promise<unknown> | undefined;
  /** Whether its machine stood still or its clock was set meanwhile: then its timers may rightly be late. */
  disturbed: boolean;
}

/** A clock that runs fast, or slow, by what the protocol allows, and a bit. */
const RATE = 1e-3;

/** How late the timers of a process may ring, and how early. */
const LAG_MS = 10;

export function startClose(drainMs: number, now: number, awaited: Promise<unknown> | undefined): Closing {
  return { startedAt: now, drainMs, drainEnds: now + drainMs * (1 - RATE) - LAG_MS, awaited, disturbed: false };
}

/** Checks what a close came to: its time, its outcome, and that every section which runs on has been told. */
export function checkClose(
  { startedAt, drainMs, disturbed }: Closing,
  result: {
    readonly now: number;
    readonly releaseWithinMs: number;
    readonly outcome: unknown;
    /** Those that run on. */
    readonly sections: readonly Holding[];
    readonly coverage: Coverage;
  },
): void {
  const { now, releaseWithinMs, outcome, sections, coverage } = result;
  const tookMs = now - startedAt;
  if (!disturbed && tookMs > (drainMs + releaseWithinMs) * (1 + RATE) + LAG_MS) {
    throw new Violation("a close ends in time", `it took ${tookMs} ms for ${drainMs} and ${releaseWithinMs} ms`);
  }
  for (const { uuid, told } of sections) {
    if (!told) throw new Violation("a loss reaches its section", `the table of ${uuid} is closed, and it was not told`);
    coverage.count("sections that outlived the close");
  }
  coverage.count(outcome === undefined ? "closes without a loss" : "closes that revoked sections");
  if (outcome === undefined) return;
  const isDocumented =
    outcome instanceof AggregateError &&
    outcome.errors.every((error) => error instanceof LockLostError && error.reason === "closed");
  if (!isDocumented) throw new Violation("a call ends as documented", `a close threw ${outcome}`);
}
