import type { Line } from "./register.js";

/**
 * Two readings of the machine's stopwatch between which a section certainly believed that it held the lock: one taken
 * right after it first saw `held`, one taken right before it last did.
 */
export interface Belief {
  readonly section: string;
  readonly from: number;
  readonly to: number;
}

/** How far a section of a fenced lock has read the log. It had its token before it began to read. */
export interface Look {
  readonly section: string;
  readonly token: bigint;
  /** The place of the last line; 0 where there was none. */
  readonly version: number;
}

/** What became of a lock that was handed off, in readings of the machine's stopwatch. */
export interface HandedOff {
  /** The section that has handed it off, which names the token. */
  readonly by: string;
  /** When its token was there, at the latest. */
  readonly from: number;
  /** When its time was over, at the earliest. */
  readonly until: number;
}

/** Somebody has tried to go on with a token. */
export interface Resumption {
  /** The token, by the section that it is from. */
  readonly of: string;
  /** Before the try. */
  readonly at: number;
  /** The section that goes on, if it does. */
  readonly section: string | undefined;
}

/** What happened around one lock. */
export interface History {
  /** The register's log, as the table has it at the end. */
  readonly lines: readonly Line[];
  /** What sections told of their belief. A section that was killed told nothing, and only its lines speak for it. */
  readonly beliefs: readonly Belief[];
  /** The lines of which the table told their writers that it has them. */
  readonly acknowledged: readonly Pick<Line, "version" | "section" | "step">[];
  /** Only of a lock with fencing tokens. */
  readonly looks: readonly Look[];
  /** Guarded lines that were sent when the release of their section's lock had been acknowledged. */
  readonly sentAfterRelease: readonly Pick<Line, "section" | "step">[];
  readonly handedOff: readonly HandedOff[];
  readonly resumptions: readonly Resumption[];
}

export interface Violation {
  readonly kind:
    | "interleaved"
    | "overlap"
    | "crowded"
    | "lost update"
    | "token order"
    | "late"
    | "after release"
    | "beside"
    | "resumed twice";
  readonly detail: string;
}
