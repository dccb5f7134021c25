import {
  acquisition,
  batches,
  call,
  closing,
  election,
  flights,
  handle,
  lease,
  lockAll,
  lockSet,
  look,
  looks,
  rowTake,
  rules,
  setWatch,
  table,
  wasApplied,
} from "./files.js";
import type { Defects } from "./patch.js";

/** Defects of `lockAll`. What each breaks is a sentence of docs/several-locks.md. */
export const SET_DEFECTS: Defects = {
  "a set takes those of its locks that are free": [
    // A transaction, as it is here: DynamoDB applies all of its writes or none.
    table(/wouldBe\.some\(\(\{ kind \}\) => kind === "refused"\)/g, "false"),
  ],
  "a set does not hear that one of its locks is lost": [
    lockSet(/lock\.signal\.addEventListener\(.*\);/g, "void lock.signal;"),
  ],
  "a set whose caller has gone gives back its first lock alone": [
    lockAll(/const \{ exit \} of leases\b/g, "$&.slice(0, 1)"),
    lockAll(/acquisitions\.slice\(0, 2\)/g, "acquisitions.slice(0, 1)"),
    lockAll(/acquisitions\.slice\(2\)/g, "[]"),
  ],
  "an own set on the rows is not recognised": [
    lockAll(/new RowTake\(.*?\)/g, "Object.assign($&, { isOfSet: true })"),
    rowTake(/\bisOwn\(row\) \{/g, "$& if (this.isOfSet) return false;"),
  ],
  "a set watches each row that has refused it, one after the other": [
    setWatch(/held = await this\.#nextHeld\(held\);/g, "held = refusers[refusers.indexOf(held) + 1];"),
  ],
  "a set is asked for again as soon as the row that it watches is free": [
    setWatch(/held = await this\.#nextHeld\(held\);/g, "held = undefined;"),
  ],
  "a set forgets which rows have refused it before": [
    setWatch(/for \(const inTheWay of refusers\)/g, "this.#refusers.clear();\n$&"),
  ],
  "a set releases its first lock alone": [
    lockSet(/this\.#all\.map\(\(lock\) => lock\.unlock\(\)\)/g, "[this.#all[0].unlock()]"),
  ],
};

/** Defects of `close()`. What each breaks is a sentence of docs/shutdown.md. */
export const CLOSE_DEFECTS: Defects = {
  "the row of a revoked section is deleted at once": [
    lease(/return this\.end\("closed"\);/g, "{ void this.row.release(); $& }"),
  ],
  "the drain ignores the sections that run": [
    closing(/await this\.#pauseWhile\(\(\) => this\.#drainEnds - .*\);/g, ""),
  ],
  "a close waits for the last section, however long that takes": [
    closing(/#pauseWhile\(\(\) => this\.remainingMs\)/g, "#pauseWhile(() => 1_000)"),
  ],
  "a close does not revoke the sections that run on": [closing(/lease\.revoke\(\) \?\? \[\]/g, "[]")],
};

const OUTCOME = /this\.#settle\(member, outcomes\[index\]\)/g;

/**
 * Defects of renewals that travel together; renewal-batches.test.ts finds others, such as a stamp that two rows share.
 * What each breaks is a sentence of docs/protocol.md, or a rule in renewal-batches.ts.
 */
export const BATCH_DEFECTS: Defects = {
  "a renewal is judged by the outcome of another in its batch": [batches(OUTCOME, "this.#settle(member, outcomes[0])")],
  "the refusal of one renewal counts as the loss of its neighbours": [
    batches(OUTCOME, 'this.#settle(member, outcomes.find((one) => one.kind === "refused") ?? outcomes[index])'),
  ],
  "where batches cannot be used, those of the refused one count as renewed": [
    batches(
      /member\.settle\(this\.#sender\.one\(member\.renewal, member\.signal\)\)/g,
      'member.settle({ kind: "applied", replaced: undefined, drawn: undefined })',
    ),
  ],
  "those of a batch without an answer count as renewed": [
    batches(
      /for \(const member of batch\)\s+this\.#settle\(member, error\)/g,
      'for (const member of batch) this.#settle(member, { kind: "applied", replaced: undefined, drawn: undefined })',
    ),
  ],
};

/** Defects of `singleFlight()`. What each breaks is a sentence of docs/single-flight.md. */
export const FLIGHT_DEFECTS: Defects = {
  "a flight that was over before the call counts": [
    look(/return number > this\.#overBy && (found !== undefined) && .*;/g, "return $1;"),
  ],
  "a flight counts that was over before another look": [look(/number > this\.#overBy && /g, "")],
  "a look waits until the one before is answered": [
    looks(
      /await \(before === undefined \? undefined : this\.#whileDue\(before\)\)/g,
      "await before?.answered.catch(() => undefined)",
    ),
  ],
  "a result is dated by the latest time that it may have been": [
    flights(/earliestOf\(this\.#session\.clock\.wall\(\)\)/g, "Math.ceil(this.#session.clock.wall().latest)"),
  ],
  "which flights were over is read eventually consistent": [
    look(/consistent: isConsistent \}/g, "consistent: false }"),
  ],
};

const STEP_ENDS =
  /return this\.#session\.untilClosed\(Math\.max\(this\.#lease\.settings\.releaseWithinMs, leftMs\)\);/g;

/** Defects of steps between the end of a function and the release. What each breaks is a sentence of docs/protocol.md. */
export const AFTER_WORK_DEFECTS: Defects = {
  "renewals move the end of a step after the work": [
    handle(STEP_ENDS, "return () => (this.held ? this.#lease.deadline : this.#session.clock.atMost());"),
  ],
};

/** Defects of ticks that are run until they succeed. What each breaks is a sentence of docs/protocol.md. */
export const TICK_DEFECTS: Defects = {
  "the attempt that was seen is not compared": [rules(/, equal\("attempt", \{ value: "seenAttempt" \}\)/g, "")],
  "a success counts as recorded without an answer": [
    acquisition(/cause = error;\n(\s+)\}\n(\s+publish\("dynamutex:not-recorded")/g, "return;\n$1}\n$2"),
  ],
  "a row without a holder proves that a success was recorded": [
    wasApplied(
      /refusedBy\.due !== write\.tick && (refusedBy\.attempt === write\.attempt)/g,
      "refusedBy.uuid === undefined && $1",
    ),
  ],
  "a lease whose section has an outcome to record is passed on": [call(/lease\.row\.attempt !== undefined/g, "false")],
  "an attempt that has begun is set back": [
    acquisition(/this\.attempt === undefined \|\| this\.hasBegun/g, "this.attempt === undefined"),
  ],
  "a run begins after the last one": [rowTake(/next\.attempt > maxAttempts \? \{ attempt: 1 \} : next/g, "next")],
};

/** Defects of `elect()`. What each breaks is a sentence of docs/leader-election.md. */
export const ELECTION_DEFECTS: Defects = {
  "a candidate campaigns again without a pause": [
    election(/await clock\.sleep\(pauseMs, ends\)/g, "await clock.sleep(0, ends)"),
  ],
  "a leader that has returned campaigns again": [
    election(/ends\.aborted \|\| term\.outcome === "returned"/g, "ends.aborted"),
  ],
  "a leader that resigns does not hear of it": [
    election(/\{ signal: ends|campaign\(led, ends\)/g, "campaign(led, new AbortController().signal)"),
  ],
};
