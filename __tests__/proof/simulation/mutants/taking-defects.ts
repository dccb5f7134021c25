import type { Defects } from "./defect.js";

/** Defects of taking and holding. What each breaks is a sentence of docs/protocol.md. */
export const TAKING_DEFECTS: Defects = {
  "a lease does not run while its host is suspended": {
    "time/clock.ts": { "monotonic + suspended + missed": "monotonic" },
  },
  "what falls due in a suspend waits for its timer": {
    "session/agenda.ts": { "Math.min(leftMs, CHECK_EVERY_MS)": "leftMs" },
    test: "session/agenda",
  },
  "nobody checks the deadline": {
    "holding/term.ts": { "this.session.clock.atMost() >= this.deadline": "this.session.clock.atMost() >= Infinity" },
  },
  "a watcher counts on the lease's stopwatch": {
    "session/sightings.ts": {
      "since: this.#clock.atLeast()": "since: this.#clock.atMost()",
      "unchanged(at: Address, asOf: number = this.#clock.atLeast())":
        "unchanged(at: Address, asOf: number = this.#clock.atMost())",
      "untilUnchanged(at: Address, asOf: number = this.#clock.atLeast())":
        "untilUnchanged(at: Address, asOf: number = this.#clock.atMost())",
    },
    "taking/rows.ts": { "asOf: clock.atLeast()": "asOf: clock.atMost()" },
  },
  "a watcher waits for its own ttl and not the row's": {
    "taking/watch.ts": {
      "sightings.note(at, next)": "sightings.note(at, next && { ...next, ttlMs: target.settings.ttlMs })",
    },
    "taking/claim.ts": {
      "sightings.note(target.at, row)": "sightings.note(target.at, { ...row, ttlMs: target.settings.ttlMs })",
    },
  },
  "the clock is a point": {
    "time/table-clock.ts": {
      "return { earliest, latest };":
        "const point = (earliest + latest) / 2; return { earliest: point, latest: point };",
    },
  },
  "a write is sent on wide bounds": {
    "time/table-clock.ts": {
      "return bounds !== undefined && bounds.latest - bounds.earliest <= CURRENT_WIDTH_MS;":
        "return bounds !== undefined;",
    },
  },
  "the earliest time follows a single reply that contradicts it": {
    "time/table-clock.ts": {
      "this.#all = withOneMore(heard, { time: reply, agreedSince: now.atLeast, isConfirmed: false });":
        "this.#all = [{ time: reply, agreedSince: now.atLeast, isConfirmed: false }];",
    },
  },
  "a second reply confirms a time that contradicts another": {
    "time/table-clock.ts": { "CONFIRM_MS = 60_000": "CONFIRM_MS = 0" },
  },
  "an own renewal on the row is not recognised": {
    "protocol/was-applied.ts": {
      '&& refusedBy?.expires === write.expires ? "yes" : "no"': '&& refusedBy?.expires === write.expires ? "no" : "no"',
    },
    "taking/row-writes.ts": { "if (!isStillHeldBy(lease.uuid, answer.row))": "if (true)" },
  },
  "a claim in flight is forgotten when its caller gives up": {
    "taking/claim.ts": { "if (isDoubtful || copies.sent > 1)": "if (false)" },
  },
  "a call counts its own earlier claim as another's": {
    "session/sightings.ts": { "this.#abandonedAttempt(uuid) !== undefined": "false" },
  },
  "what a call has seen is forgotten with what its process remembers": {
    "session/sightings.ts": { "return new Sightings(this.#clock, { hints: this });": "return this;" },
  },
  "one refused copy counts as proof that no other is in flight": {
    "taking/claim.ts": { "if (copies.unanswered > 0 || outcome.retried)": "if (false)" },
  },
  "a lock is delivered to a caller that has gone": {
    "queues/sections.ts": { "if (call.isSettled)": "if (call.number < 0)" },
  },
  "a holder does not learn what the row remembers": {
    "taking/row-take.ts": { "memoryOf(row)": '"nothing"', "memoryOf(replaced)": '"nothing"' },
  },
  "data that the table refuses are sent until the lease ends": {
    "taking/row-writes.ts": {
      "data === undefined ? { ...trying, worthRetrying: () => true } : trying":
        "{ ...trying, worthRetrying: () => true }",
    },
    "holding/renewals.ts": { "(this.#session.clock.atMost() + deadline) / 2": "deadline" },
  },
  "a pause may be longer than what is left of a lease": {
    "session/retry.ts": { "SHARE_OF_REST = 1 / 3": "SHARE_OF_REST = Infinity" },
    test: "behaviour/holding/last-second",
  },
  "an attempt may wait until a lease ends": {
    "session/requests.ts": { "ATTEMPT_SHARE_OF_REST = 2 / 3": "ATTEMPT_SHARE_OF_REST = Infinity" },
    test: "behaviour/holding/last-second",
  },
  "a call waits for a read of the time however long that takes": {
    "taking/known-time.ts": { "overdueAt: clock.atLeast() + patienceMs": "overdueAt: Infinity" },
    test: "behaviour/taking/known-time",
  },
  "a passed lease keeps its token": {
    "holding/renewals.ts": { ' || (this.#usage === "used" && settings.fencing)': "" },
  },
};
