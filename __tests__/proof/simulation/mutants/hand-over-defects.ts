import type { Defects } from "./defect.js";

/** Defects of what the sections of one process share. What each breaks is said in lib/queues/ and lib/session/. */
export const HAND_OVER_DEFECTS: Defects = {
  "a lease is passed on although others wait for ever": {
    takesOut: ["trap 27", "protocol#turns 4"],
    "session/contention.ts": {
      "return known.turnSince === undefined ? 0 : Math.max(0, known.turnSince + handOverMs - this.#clock.atLeast());":
        "return Number.POSITIVE_INFINITY;",
    },
  },
  "one lease in ten is released although a caller of the process waits": {
    takesOut: ["locks#waiting: Callers in one process queue", "protocol#releasing"],
    "queues/sections.ts": {
      "sectionsShareLease && stands && this.#canPass(line, own);":
        "sectionsShareLease && stands && this.#canPass(line, own) && this.session.random() >= 0.1;",
    },
    test: "proof/work/work.full",
  },
  "a lease is passed on without a look whether others wait": {
    takesOut: ["trap 27", "protocol#turns 2"],
    "queues/turns.ts": { " >= settings.handOverMs": " >= Infinity" },
  },
  "a mark that a look from before the take shows ends the turn": {
    takesOut: ["protocol#turns 4"],
    "session/contention.ts": { 'if (ours.length > 0 && !ours.includes(row.uuid ?? "")) return;': "" },
    test: "behaviour/taking/contention",
  },
  "a process does not stand back for those who wait": {
    takesOut: ["trap 27", "protocol#turns 5", "protocol#turns"],
    "session/contention.ts": {
      "const until = now + (needMs ?? STAND_BACK_POLLS * longestPollMs);": "const until = now;",
    },
  },
  "a mark does not say how long its writer needs": {
    takesOut: ["trap 27", "protocol#turns 1"],
    "protocol/mark.ts": { "(needInMark(needMs) / NEED_STEP_MS) * STEP_FRACTION": "0" },
    test: "behaviour/taking/far-waiters",
  },
  "a process stands back for two of its own longest polls, whatever a waiter needs": {
    takesOut: ["trap 27", "protocol#turns 5"],
    "session/contention.ts": { "needMs ?? STAND_BACK_POLLS": "STAND_BACK_POLLS" },
    test: "behaviour/taking/far-waiters",
  },
  "a smaller need is written over a larger one": {
    takesOut: ["protocol#turns 3"],
    "session/contention.ts": { "Math.max(known.needMs ?? 0, needMs)": "needMs" },
    test: "behaviour/taking/far-waiters",
  },
  "a waiter that needs longer counts on the mark of another": {
    takesOut: ["protocol#waiting 2"],
    "taking/watch.ts": { "(markInNumber(row.wanted).needMs ?? UNSAID_NEED_MS) >= ": "Infinity >= " },
    test: "behaviour/taking/far-waiters",
  },
  "a release that is answered late gives others no turn": {
    takesOut: ["protocol#turns 5"],
    "holding/exit.ts": {
      'kind !== "unknown" && this.onLateRelease?.()': 'kind === "unknown" && this.onLateRelease?.()',
    },
    test: "behaviour/holding/unlock-in-time",
  },
  "a take forgets that others wait": {
    takesOut: ["trap 27", "protocol#turns 3"],
    "taking/row-take.ts": { "contention?.markOf(at)": "undefined" },
  },
  "nobody looks for marks where a lease cannot be passed on": {
    takesOut: ["protocol#turns 2"],
    "taking/row-writes.ts": {
      "session.contended().sees(outcome.replaced);": "void 0;",
    },
  },
  "a waiter marks before it looks": {
    takesOut: ["protocol#waiting 2"],
    "taking/watch.ts": { "if (row !== first)": "", "now - blocked.since < settings.handOverMs || ": "" },
  },
  "a passed lease does not change the uuid after a guard": {
    takesOut: ["protocol#releasing"],
    "holding/renewals.ts": { 'this.#usage === "guarded" || ': "" },
  },
  "the loss of a passed lease is told to the section before": {
    takesOut: ["protocol#losing"],
    "holding/lease.ts": {
      "begin(user: LeaseUser): number {":
        "firstUser: LeaseUser | undefined; begin(user: LeaseUser): number { user = this.firstUser ??= user;",
    },
  },
  "a renewal leaves before one whose lease ends first": {
    takesOut: ["trap 28", "protocol#requests-of-one-process: Renewals leave at once"],
    "session/backlog.ts": { "? one.deadline < other.deadline :": "? false :" },
    test: "session/scheduler",
  },
};
