import type { Defects } from "./defect.js";

/** Defects of what the sections of one process share. What each breaks is said in lib/queues/ and lib/session/. */
export const HAND_OVER_DEFECTS: Defects = {
  "a lease is passed on although others wait for ever": {
    "session/contention.ts": {
      "isTurnOver(at: Address, handOverMs: number): boolean {":
        "isTurnOver(at: Address, handOverMs: number): boolean { return false;",
    },
  },
  "one lease in ten is released although a caller of the process waits": {
    "queues/sections.ts": {
      "if (!this.#canPass(line, own)) return false;":
        "if (!this.#canPass(line, own) || this.session.random() < 0.1) return false;",
    },
    test: "proof/work/work.full",
  },
  "a lease is passed on without a look whether others wait": {
    "queues/turns.ts": { " >= settings.handOverMs": " >= Infinity" },
  },
  "a process does not stand back for those who wait": {
    "session/contention.ts": {
      "const until = now + (needMs ?? STAND_BACK_POLLS * longestPollMs);": "const until = now;",
    },
  },
  "a mark does not say how long its writer needs": {
    "protocol/mark.ts": { "(needInMark(needMs) / NEED_STEP_MS) * STEP_FRACTION": "0" },
    test: "behaviour/taking/far-waiters",
  },
  "a process stands back for two of its own longest polls, whatever a waiter needs": {
    "session/contention.ts": { "needMs ?? STAND_BACK_POLLS": "STAND_BACK_POLLS" },
    test: "behaviour/taking/far-waiters",
  },
  "a smaller need is written over a larger one": {
    "session/contention.ts": { "Math.max(known.needMs ?? 0, needMs)": "needMs" },
    test: "behaviour/taking/far-waiters",
  },
  "a waiter that needs longer counts on the mark of another": {
    "taking/watch.ts": { "(markInNumber(row.wanted).needMs ?? UNSAID_NEED_MS) >= ": "Infinity >= " },
    test: "behaviour/taking/far-waiters",
  },
  "a take forgets that others wait": { "taking/row-take.ts": { "contention?.markOf(at)": "undefined" } },
  "nobody looks for marks where a lease cannot be passed on": {
    "taking/row-writes.ts": {
      "session.contended().sees(outcome.replaced);": "void 0;",
    },
  },
  "a waiter marks before it looks": {
    "taking/watch.ts": { "if (row !== first)": "", "now - blocked.since < settings.handOverMs || ": "" },
  },
  "a passed lease does not change the uuid after a guard": {
    "holding/renewals.ts": { 'this.#usage === "guarded" || ': "" },
  },
  "the loss of a passed lease is told to the section before": {
    "holding/lease.ts": {
      "begin(section: Section): number {":
        "firstSection: Section | undefined; begin(section: Section): number { section = this.firstSection ??= section;",
    },
  },
  "a renewal leaves before one whose lease ends first": {
    "session/backlog.ts": { "? one.deadline < other.deadline :": "? false :" },
    test: "session/scheduler",
  },
};
