import type { Defects } from "./defect.js";

/** Defects of taking and holding. What each breaks is a sentence of docs/design/protocol.md. */
export const TAKING_DEFECTS: Defects = {
  "a lease does not run while its host is suspended": {
    takesOut: [
      "trap 16",
      "trap 22",
      "protocol#taking-over",
      "guarantees#one-holder",
      "guarantees#clocks: Setting a host's wall clock",
    ],
    "time/clock.ts": { "monotonic + suspended + missed": "monotonic" },
  },
  "what falls due in a suspend waits for its timer": {
    takesOut: ["trap 16", "protocol#taking-over"],
    "session/agenda.ts": { "Math.min(moment - from, CHECK_EVERY_MS)": "moment - from" },
    test: "session/agenda",
  },
  "nobody checks the deadline": {
    takesOut: ["trap 12", "trap 16", "protocol#losing"],
    "holding/term.ts": { "this.session.clock.atMost() >= this.deadline": "this.session.clock.atMost() >= Infinity" },
  },
  "a watcher counts on the lease's stopwatch": {
    takesOut: ["trap 22", "protocol#taking-over"],
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
    takesOut: ["trap 8", "protocol#taking-over 2"],
    "taking/watch.ts": {
      "sightings.note(at, next)": "sightings.note(at, next && { ...next, ttlMs: target.settings.ttlMs })",
    },
    "taking/claim.ts": {
      "sightings.note(target.at, row)": "sightings.note(target.at, { ...row, ttlMs: target.settings.ttlMs })",
    },
  },
  "the clock is a point": {
    takesOut: ["protocol#time", "guarantees#clocks: tableClock()"],
    "time/table-clock.ts": {
      "return { earliest, latest };":
        "const point = (earliest + latest) / 2; return { earliest: point, latest: point };",
    },
  },
  "a write is sent on wide bounds": {
    takesOut: ["trap 23", "trap 24", "protocol#time-first", "protocol#time-first: So the first lock"],
    "time/table-clock.ts": {
      "return bounds !== undefined && bounds.latest - bounds.earliest <= CURRENT_WIDTH_MS;":
        "return bounds !== undefined;",
    },
  },
  "the earliest time follows a single reply that contradicts it": {
    takesOut: ["trap 32", "protocol#wrong-dates: A reply that is ahead"],
    "time/table-clock.ts": {
      "this.#all = withOneMore(heard, { time: reply, agreedSince: now.atLeast, isConfirmed: false });":
        "this.#all = [{ time: reply, agreedSince: now.atLeast, isConfirmed: false }];",
    },
  },
  "a second reply confirms a time that contradicts another": {
    takesOut: ["trap 32", "protocol#wrong-dates: A time counts alone"],
    "time/table-clock.ts": { "CONFIRM_MS = 60_000": "CONFIRM_MS = 0" },
  },
  "an own renewal on the row is not recognised": {
    takesOut: ["trap 2", "protocol#keeping 2", "guarantees#networks-and-crashes: A lost reply"],
    "protocol/was-applied.ts": {
      '&& refusedBy?.expires === write.expires ? "yes" : "no"': '&& refusedBy?.expires === write.expires ? "no" : "no"',
    },
    "taking/row-writes.ts": { "if (!isStillHeldBy(lease.uuid, answer.row))": "if (true)" },
  },
  "a claim in flight is forgotten when its caller gives up": {
    takesOut: [
      "trap 17",
      "protocol#taking 6",
      "protocol#abandoned-claims: In the background",
      "guarantees#networks-and-crashes: A wait leaves",
      "shutdown#what-is-promised: Claims in flight",
    ],
    "taking/claim.ts": { "if (isDoubtful || copies.sent > 1)": "if (false)" },
  },
  "a call counts its own earlier claim as another's": {
    takesOut: ["trap 36", "protocol#abandoned-claims: A call never"],
    "session/sightings.ts": { "uuid !== undefined && this.#disowned.has(uuid)": "uuid === null" },
  },
  "a process remembers fewer rows than it asks for at once": {
    takesOut: ["protocol#taking-over", "guarantees#networks-and-crashes: tryLock() and tryRun() decide"],
    "session/sightings.ts": { "MOST_REMEMBERED = 100_000": "MOST_REMEMBERED = 1" },
    test: "behaviour/taking/many-names",
  },
  "one refused copy counts as proof that no other is in flight": {
    takesOut: [
      "trap 38",
      "protocol#abandoned-claims: In the background",
      "guarantees#networks-and-crashes: A wait leaves",
    ],
    "taking/claim.ts": { "if (copies.unanswered > 0 || outcome.retried)": "if (false)" },
  },
  "a lock is delivered to a caller that has gone": {
    takesOut: ["trap 17", "protocol#taking 6"],
    "queues/sections.ts": { "if (call.isSettled)": "if (call.number < 0)" },
  },
  "a holder does not learn what the row remembers": {
    takesOut: ["protocol#the-row: What a row remembers"],
    "taking/row-take.ts": { "memoryOf(row)": '"nothing"', "memoryOf(replaced)": '"nothing"' },
  },
  "data that the table refuses are sent until the lease ends": {
    takesOut: ["protocol#keeping 5"],
    "taking/row-writes.ts": {
      "data === undefined ? { ...trying, worthRetrying: () => true } : trying":
        "{ ...trying, worthRetrying: () => true }",
    },
    "holding/renewals.ts": { "(this.#session.clock.atMost() + deadline) / 2": "deadline" },
  },
  "a pause may be longer than what is left of a lease": {
    takesOut: ["trap 51", "protocol#keeping 4", "guarantees#networks-and-crashes: A lock is kept"],
    "session/retry.ts": { "SHARE_OF_REST = 1 / 3": "SHARE_OF_REST = Infinity" },
    test: "behaviour/holding/last-second",
  },
  "an attempt may wait until a lease ends": {
    takesOut: ["trap 51", "protocol#keeping 4", "guarantees#networks-and-crashes: A lock is kept"],
    "session/requests.ts": { "ATTEMPT_SHARE_OF_REST = 2 / 3": "ATTEMPT_SHARE_OF_REST = Infinity" },
    test: "behaviour/holding/last-second",
  },
  "a call waits for a read of the time however long that takes": {
    takesOut: ["trap 23", "protocol#time-first"],
    "taking/known-time.ts": { "overdueAt: clock.atLeast() + patienceMs": "overdueAt: Infinity" },
    test: "behaviour/taking/known-time",
  },
  "a passed lease keeps its token": {
    takesOut: ["protocol#releasing"],
    "holding/renewals.ts": { ' || (this.#usage === "used" && settings.fencing)': "" },
  },
  "a release waits for the renewal in flight": {
    takesOut: ["trap 4", "protocol#releasing 1"],
    "holding/exit.ts": { "if (this.#lease.writing?.isReissue) await": "await" },
    test: "behaviour/holding/unlock-in-time",
  },
  "a lease of which half is gone is handed out as it is": {
    takesOut: ["protocol#taking 5"],
    "holding/renewals.ts": {
      "!isHalfGone(this.#session, row) && coversPeriod(this.#session, row)": "coversPeriod(this.#session, row)",
    },
    test: "behaviour/taking/lapsed",
  },
  "a lease of which half is gone passes on as it is": {
    takesOut: ["protocol#releasing"],
    "holding/renewals.ts": {
      "!mustReissue && !isHalfGone(this.#session, this.#term.row)": "!mustReissue",
    },
    test: "behaviour/taking/hand-over",
  },
  "a lease that has lapsed is given back": {
    takesOut: ["protocol#taking 5"],
    "holding/renewals.ts": { "if (!mayLapse) return ended;": "if (!mayLapse || Boolean(1)) return ended;" },
    test: "behaviour/taking/lapsed",
  },
  "a failure that is not transient ends the renewing": {
    takesOut: ["trap 6", "protocol#keeping 4"],
    "taking/row-writes.ts": {
      "data === undefined ? { ...trying, worthRetrying: () => true } : trying": "trying",
    },
    test: "behaviour/holding/renewal",
  },
  "a failure that is not transient ends a release": {
    takesOut: ["trap 33", "protocol#releasing 4"],
    "taking/row-writes.ts": {
      'kind: "release", worthRetrying: () => true': 'kind: "release", worthRetrying: isTransient',
    },
    test: "behaviour/holding/release-failures",
  },
  "a lease that was over keeps its uuid": {
    takesOut: ["trap 45", "protocol#taking 5"],
    "holding/renewals.ts": {
      "const reissued = await reissue(session, this.#term.row, tryingUntil(":
        "const reissued = await renew(session, this.#term.row, tryingUntil(",
    },
    test: "behaviour/election/observe",
  },
  "a claim without an answer is sent beyond its lease": {
    takesOut: ["protocol#taking 4"],
    "taking/claim.ts": { "Math.min(taking.sentAt + leaseMs, until())": "until()" },
    test: "behaviour/taking/own-claims",
  },
  "nobody takes over by watching": {
    takesOut: ["protocol#taking-over 2", "guarantees#clocks"],
    "session/sightings.ts": {
      "this.isDisowned(seen) ? 0 : Math.max(": "this.isDisowned(seen) ? 0 : 1_000 + 0 * Math.max(",
    },
    test: "behaviour/taking/takeover",
  },
  "a long wait behind another process is not told": {
    takesOut: ["locks#waiting: A call that has waited"],
    "taking/stuck.ts": {
      "if (holder !== undefined && !isTold) {": "if (leaseInUse(session, holder?.uuid) && holder && !isTold) {",
    },
    test: "behaviour/taking/long-wait",
  },
  "a candidate of an election is told as a call that waits long": {
    takesOut: ["locks#waiting: A call that has waited"],
    "taking/call.ts": { " || this.bounds.isCandidate) return;": ") return;" },
    test: "behaviour/taking/long-wait",
  },
  "nested locks are not told": {
    takesOut: ["locks#waiting: A mutex is not re-entrant"],
    "taking/stuck.ts": { "else tell(session, number, lease, now - waitsSince);": "else void tell;" },
    test: "behaviour/taking/stuck",
  },
  "a call that waits walks the leases of its process": {
    takesOut: ["protocol#waiting 6"],
    "session/held-leases.ts": {
      "return this.#byUuid.get(uuid);":
        "for (const lease of this) if (rowsOf(lease.row).some((row) => row.uuid === uuid)) return lease; return undefined;",
    },
    test: "behaviour/taking/many-waiters",
  },
  "a section of this process does not hear that its lock was ended by force": {
    takesOut: ["trap 37", "protocol#losing"],
    "operations/force-unlock.ts": { 'own.lose("forced");': "void own;" },
    test: "operations/force-unlock",
  },
  "a loss that handOff() finds does not end its section": {
    takesOut: ["trap 46"],
    "holding/handle.ts": { "if (this.#over !== undefined) this.#throwIfNotHeld();": "this.#throwIfNotHeld();" },
    test: "behaviour/hand-off/hand-off",
  },
  "a signal that is read after a loss has not aborted": {
    takesOut: ["protocol#losing", "locks#losing-a-lock: lock.signal aborts"],
    "holding/handle.ts": {
      "void this.lost; return this.#signal.signal;": "return this.#signal.signal;",
      "new LossSignal(() => this.lost)": "new LossSignal(() => undefined)",
    },
    test: "behaviour/holding/loss",
  },
  "unlock() resolves although the lock was lost": {
    takesOut: [
      "locks#while-you-hold-it: run() rejects",
      "locks#losing-a-lock: The end of the await using block",
      "shutdown#what-is-promised: A revoked section",
    ],
    "holding/exit.ts": { "await remove(); throw lost;": "await remove();" },
    test: "behaviour/holding/loss",
  },
};
