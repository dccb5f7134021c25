import type { Defects } from "./defect.js";

/** Defects of what a caller is promised, and of what a request says and when it leaves. What each breaks is a sentence of a page. */
export const PROMISE_DEFECTS: Defects = {
  // What the four calls promise: docs/guides/locks.md.
  "a name is compared in its composed form": {
    takesOut: ["locks#locks", "locks#names"],
    "protocol/addresses.ts": {
      "lockAt = (name: string): Address => ({ name, sort: LOCK_SORT })":
        'lockAt = (name: string): Address => ({ name: name.normalize("NFC"), sort: LOCK_SORT })',
    },
    test: "behaviour/taking/uncontended",
  },
  "the signal of a run() does not reach its section": {
    takesOut: ["locks#waiting: A signal given to lock()"],
    "section-calls.ts": { "lock.follow(signal)": "lock.follow(undefined)" },
    test: "behaviour/lockable",
  },
  "the signal of a lock() aborts the lock's own": {
    takesOut: ["locks#waiting: A signal given to lock()"],
    "section-calls.ts": {
      "settle: (lock) => call.settle(lock) }": "settle: (lock) => { lock.follow(signal); call.settle(lock); } }",
    },
    test: "behaviour/lockable",
  },
  "the signal of a try counts only while it waits": {
    takesOut: ["locks#waiting: A signal given to lock()"],
    "section-calls.ts": {
      "const { signal } = options; signal?.throwIfAborted(); const request =":
        "const { signal } = options; const request =",
    },
    test: "behaviour/taking/signals",
  },
  "the signal of an extend() does not end it": {
    takesOut: ["locks#while-you-hold-it: lock.extend()"],
    "holding/handle.ts": { "return signal === undefined ? renewed : awaitShared(signal, renewed);": "return renewed;" },
    test: "behaviour/taking/signals",
  },
  "a loss hides what the function of a run() has thrown": {
    takesOut: ["locks#while-you-hold-it: run() rejects"],
    "section-calls.ts": { "await lock.unlock().catch(() => undefined);": "await lock.unlock();" },
    test: "behaviour/holding/unlock",
  },
  "a run() whose lock was lost is a success": {
    takesOut: ["locks#while-you-hold-it: run() rejects", "locks#losing-a-lock: The end of the await using block"],
    "section-calls.ts": {
      "await lock.unlock(); return value;": "await lock.unlock().catch(() => undefined); return value;",
    },
    test: "behaviour/holding/unlock",
  },
  "a lease passes to a section that has data": {
    takesOut: ["locks#waiting: Callers in one process queue"],
    "kinds/kind.ts": { "if (data !== undefined || lease.renewals.mayHaveData ||": "if (" },
    test: "behaviour/taking/hand-over",
  },
  "a timer keeps the process alive": {
    takesOut: ["trap 15", "locks#waiting: A lock() that waits keeps"],
    "time/clock.ts": { "(timer as Partial<NodeJS.Timeout>).unref?.();": "" },
    test: "time/clock",
  },
  "a process exits although a call waits": {
    takesOut: ["trap 15", "locks#waiting: A lock() that waits keeps"],
    "time/clock.ts": {
      "const timer = setTimeout(wake, timerMs(ms));": "const timer = setTimeout(wake, timerMs(ms)).unref();",
      "const timer = setInterval(() => undefined, MAX_TIMER_MS);":
        "const timer = setInterval(() => undefined, MAX_TIMER_MS).unref();",
    },
    test: "time/clock",
  },
  "a lock is renewed once": {
    takesOut: ["locks#while-you-hold-it: The library renews"],
    "holding/renewals.ts": { "this.#arm(Math.max(isLonger ? 0 : RENEW_AGAIN_MS, this.#dueIn()));": "" },
  },
  "a lock is held beyond maxHoldMs": {
    takesOut: ["locks#while-you-hold-it: The library renews"],
    "holding/term.ts": { "clock.atMost() + this.settings.maxHoldMs": "Number.POSITIVE_INFINITY" },
    test: "behaviour/holding/renewal",
  },
  "a lock is held beyond a maxHoldMs that is shorter than its lease until somebody looks": {
    takesOut: ["locks#while-you-hold-it: The library renews"],
    "holding/term.ts": { "if (this.#state.maxHoldEnds < this.usableUntil) this.#watchDeadline();": "" },
    test: "behaviour/holding/renewal",
  },
  "the renewal before a section is tried for longer than its call waits": {
    takesOut: ["protocol#taking 5"],
    "holding/renewals.ts": {
      "{ until: bid.requestEnds(), endSignal: bid.withdrawn }":
        "{ until: () => Number.POSITIVE_INFINITY, endSignal: bid.withdrawn }",
    },
    test: "behaviour/shared-mutexes/exclusive",
  },
  "a call whose time is over asks again although the renewal of what it took got no answer": {
    takesOut: ["protocol#taking 5", "protocol#waiting 4"],
    "holding/renewals.ts": { "bid.requestFailed(outcome.cause);": "void bid;" },
    test: "behaviour/taking/wait-bounds",
  },
  "waitMs does not end a wait": {
    takesOut: ["locks#waiting: End a wait"],
    "taking/call.ts": { "if (Number.isFinite(waitMs))": "if (waitMs === 0)" },
    test: "behaviour/lockable",
  },
  "a wait that ends before the table has answered says that the lock is busy": {
    takesOut: ["protocol#waiting 4", "trap 54", "guarantees#networks-and-crashes: A free lock"],
    "taking/call.ts": {
      "slotMs > 0)": "slotMs > Number.POSITIVE_INFINITY)",
      "const reason = isTrying ? (failed ?? this.#session.scheduler.unsent(this.waitedMs)) : this.refusal();":
        "const reason = this.timeout();",
    },
    test: "behaviour/taking/wait-bounds",
  },
  "an outage is a busy lock": {
    takesOut: ["protocol#waiting 5", "trap 54"],
    "taking/call.ts": {
      "const { silence, because } =": "const { because } =",
      "if (silence !== undefined) {": "const silence = { ms: 0, cause: undefined }; if (Boolean(0)) {",
    },
    test: "behaviour/taking/wait-bounds",
  },
  "the watch for sections of its own process walks all leases": {
    takesOut: ["protocol#waiting 7"],
    "taking/own-sections.ts": {
      "leases.with(uuid)": "[...leases].find(({ row }) => row.uuid === uuid)",
    },
    test: "behaviour/taking/many-waiters",
  },
  "the look of a flight waits for its slot for longer than the call": {
    takesOut: ["protocol#requests-of-one-process: A wait for a slot is bounded"],
    "flights/flights.ts": { "answeredWithin(clock, slotEnds - clock.atMost(), left)": "left" },
    test: "behaviour/taking/wait-bounds",
  },
  "a claim that its own process has given back while a flight looked is its holder": {
    takesOut: ["protocol#waiting 5"],
    "kinds/kind.ts": { "&& !session.sightings.isDisowned(row);": ";" },
    test: "behaviour/single-flight",
  },
  "a flight in a queue believes its own look, and not the newer one at the gate": {
    takesOut: ["protocol#waiting 5"],
    "kinds/kind.ts": { "claimed.seen === undefined && ": "" },
    test: "behaviour/single-flight",
  },
  "a claim that its process has given up hides the holder that was seen before": {
    takesOut: ["protocol#waiting 5"],
    "taking/view.ts": { "if (!this.#session.sightings.isDisowned(row)) this.#row = row;": "this.#row = row;" },
    test: "behaviour/taking/own-claims",
  },
  "the line of a claim that nobody got waits for its release for as long as it takes": {
    takesOut: ["protocol#abandoned-claims"],
    "queues/sections.ts": { "await answeredWithin(clock, scheduler.overdueMs, answered)": "await answered" },
    test: "behaviour/taking/own-claims",
  },
  "the removal of a dead row is no request of a call": {
    takesOut: ["protocol#waiting 4"],
    "kinds/shared-mutex-rows.ts": {
      'import { isTransient } from "../session/retry.js";':
        'import { persist } from "../session/requests.js";\nimport { isTransient } from "../session/retry.js";',
      'bid.persist({ ...bounds, kind: "take", until }, request)':
        'persist(session, { ...bounds, kind: "take", until, endSignal: bid.withdrawn }, request)',
    },
    test: "behaviour/shared-mutexes/dead-writers",
  },
  "an answer to one request of a call says that another has not failed": {
    takesOut: ["protocol#waiting 4"],
    "taking/bid.ts": {
      "this.#asking.delete(asking);\n      return answer;": "this.#asking.clear();\n      return answer;",
    },
    test: "behaviour/shared-mutexes/dead-writers",
  },
  "a writer that removes dead readers waits for them": {
    takesOut: ["protocol#waiting 4"],
    "kinds/shared-mutex-rows.ts": { "if (page.rows.length > 0) bid.tries();": "" },
    test: "behaviour/shared-mutexes/dead-writers",
  },
  "a call whose requests fail is told that others were first": {
    takesOut: ["protocol#waiting 4"],
    "taking/bid.ts": { " && this.failed === undefined": "" },
    test: "behaviour/shared-mutexes/dead-writers",
  },
  "a claim after a look at an own place goes on although that place is lost": {
    takesOut: ["queue#how-it-works: A process that loses"],
    "queues/fair-queue.ts": {
      "sentAt + LOOK_LASTS_MS, standsUntil(), bid.until()": "sentAt + LOOK_LASTS_MS, bid.until()",
    },
    test: "behaviour/fair/places",
  },
  "the release of a hand-off that nobody got ends as the wall clock is set forward": {
    takesOut: ["protocol#releasing 4"],
    "holding/exit.ts": {
      "const leftMs = end() - clock.atMost();":
        "const leftMs = end() - clock.atMost() - (clock.atMost() - clock.atLeast());",
    },
    test: "behaviour/hand-off/hand-off",
  },
  "a holder that was throttled at once does not ask in the last of its lease, since answers before were slow": {
    takesOut: ["protocol#keeping 4"],
    "session/requests.ts": { "this.quickMs = Math.min(tookMs, this.quickMs ?? tookMs);": "void tookMs;" },
    test: "behaviour/holding/last-second",
  },
  "a call behind another one of its process waits for that one's slot for as long as it takes": {
    takesOut: ["protocol#requests-of-one-process: A wait for a slot is bounded"],
    "taking/call.ts": { "attemptEnds(unsentSince ?? now)": "attemptEnds(now)" },
    test: "behaviour/taking/wait-bounds",
  },
  "a try is repeated for 9 s after waitMs": {
    takesOut: ["protocol#waiting 4"],
    "taking/call.ts": {
      "failed === undefined && slotMs > 0":
        "(failed === undefined || this.waitedMs < (this.bounds.waitMs ?? 0) + 9_000) && slotMs > 0",
    },
    test: "behaviour/taking/wait-bounds",
  },
  "the last attempt has no more time than one that is repeated": {
    takesOut: ["protocol#waiting 4"],
    "session/requests.ts": { "mayBeLast ? Math.max(usualMs, LONGEST_ATTEMPT_MS) : usualMs": "usualMs" },
    test: "behaviour/taking/wait-bounds",
  },
  "a call behind another one of its process says that the lock is busy before that one knows": {
    takesOut: ["protocol#waiting 4"],
    "queues/line.ts": {
      "bid ?? (this.leases.size < this.capacity ? shared : undefined)":
        "bid ?? (this.leases.size < 0 ? shared : undefined)",
    },
    test: "behaviour/taking/wait-bounds",
  },
  "a signal does not end a wait": {
    takesOut: ["locks#waiting: End a wait"],
    "taking/call.ts": { "signal && onAbort(signal, () => this.fail(": "signal && onAbort(signal, () => void (" },
    test: "behaviour/lockable",
  },
  "a hold is over with its section": {
    takesOut: ["locks#while-you-hold-it: holdAtLeastMs"],
    "holding/exit.ts": { "this.hold = ms > 0 ?": "this.hold = ms > 0 && clock.atMost() < 0 ?" },
    test: "behaviour/cron/hold",
  },
  "a close leaves those who wait in line": {
    takesOut: ["locks#while-you-hold-it: close()"],
    "session/session.ts": { "for (const stop of [...this.#waits]) stop(reason);": "" },
    test: "behaviour/closing",
  },
  "the loss in a SuppressedError is not found": {
    takesOut: ["locks#losing-a-lock"],
    "errors.ts": { "of [thrown, suppressed, cause,": "of [cause," },
    test: "behaviour/holding/loss",
  },
  "assertHeld() asks for no time that is left": {
    takesOut: ["locks#losing-a-lock: lock.assertHeld()"],
    "holding/handle.ts": { "if (remainingMs >= minRemainingMs) return;": "if (remainingMs >= 0) return;" },
    test: "behaviour/holding/loss",
  },
  "assertHeld() is silent after a loss": {
    takesOut: ["locks#losing-a-lock: lock.assertHeld()"],
    "holding/handle.ts": {
      "this.#throwIfNotHeld(); const { remainingMs } = this;":
        "if (this.lost === undefined) this.#throwIfNotHeld(); const { remainingMs } = this;",
    },
    test: "behaviour/holding/loss",
  },

  // `elect()`: docs/guides/leader-election.md.
  "a candidate does not wait for a leader that was told to end": {
    takesOut: ["leader-election#the-steps 3", "leader-election#what-is-promised: lead runs once"],
    "election.ts": {
      "await lead(lock);":
        'await Promise.race([lead(lock), new Promise<void>((resolve) => lock.signal.addEventListener("abort", () => resolve()))]);',
    },
    test: "behaviour/election/election",
  },
  "a lease of the dead lasts twice as long": {
    takesOut: [
      "leader-election#what-is-promised: A leader that dies",
      "semaphores#what-is-promised: A permit whose holder",
      "guarantees#networks-and-crashes: If a process dies",
    ],
    "session/sightings.ts": { "seen.since + seen.ttlMs - asOf": "seen.since + 2 * seen.ttlMs - asOf" },
    "protocol/lease-time.ts": { "Math.ceil(bounds.latest) + ttlMs": "Math.ceil(bounds.latest) + 2 * ttlMs" },
    test: "behaviour/semaphores/taking",
  },

  // The command: docs/guides/cli.md.
  "what the command has started is not told to end": {
    takesOut: ["trap 42"],
    "cli/child.ts": {
      'this.#signal("SIGKILL", this.#nested());': 'this.#process?.kill("SIGKILL");',
      'this.#signal("SIGTERM"); mention(': 'this.#process?.kill("SIGTERM"); mention(',
    },
    test: "cli/run.full",
  },

  // Time, rows and requests: docs/reference/guarantees.md and docs/design/protocol.md.
  "systemClock() knows the time exactly": {
    takesOut: ["guarantees#clocks: systemClock("],
    "time/clock.ts": { "{ earliest: now - maxSkewMs, latest: now + maxSkewMs }": "{ earliest: now, latest: now }" },
    test: "time/clock",
  },
  "a writer has the row of the mutex of its name": {
    takesOut: ["protocol#the-row"],
    "protocol/addresses.ts": { 'WRITER_SORT = "writer"': 'WRITER_SORT = "lock"' },
    test: "behaviour/semaphores/taking",
  },
  "renewals and releases wait for the time": {
    takesOut: ["protocol#time-first: Renewals and releases"],
    "taking/row-writes.ts": {
      "made ??= make(); return":
        'if (session.clock.isCurrent?.() === false) throw new LockStoreError("no time", { transient: true }); made ??= make(); return',
    },
    test: "behaviour/taking/known-time",
  },
  "a waiter reads consistently": {
    takesOut: ["protocol#waiting 1"],
    "taking/watch.ts": {
      "store.read(at, { consistent: false }, signal)": "store.read(at, { consistent: true }, signal)",
    },
    test: "behaviour/taking/waiting",
  },
  "a waiter's pauses do not grow": {
    takesOut: ["protocol#waiting 1"],
    "taking/polling.ts": { "GROWTH = 1.5": "GROWTH = 1" },
    test: "behaviour/taking/waiting",
  },
  "a waiter sleeps past the moment at which it may take over": {
    takesOut: ["protocol#waiting 1"],
    "taking/polling.ts": {
      "Math.min(Math.max(0, this.#lookAt - clock.atLeast()), Math.max(1, dueInMs))":
        "Math.max(1, this.#lookAt - clock.atLeast())",
    },
    test: "behaviour/taking/waiting",
  },
  "a process waits for the lease of its own abandoned claim": {
    takesOut: ["protocol#abandoned-claims"],
    "session/sightings.ts": { "return this.isDisowned(seen) ? 0 :": "return" },
    test: "behaviour/taking/own-claims",
  },
  "each request leaves as if it was alone": {
    takesOut: ["protocol#requests-of-one-process"],
    "session/requests.ts": {
      "(first === undefined || RANKS[kind] < RANKS[first.kind]) && this.#hasSlot(kind)":
        "first === undefined || RANKS[kind] < RANKS[first.kind] || this.#hasSlot(kind)",
    },
    test: "session/scheduler",
  },
  "a call waits for a slot for as long as it takes": {
    takesOut: ["protocol#requests-of-one-process: A wait for a slot"],
    "taking/bid.ts": { "slotUntil, endSignal: this.withdrawn,": "endSignal: this.withdrawn," },
    test: "proof/load/load",
  },
  "a writer is told that readers are there when the last of them has gone": {
    takesOut: ["protocol#waiting 4"],
    "kinds/exclusive.ts": { "bid.tries();": "" },
    test: "behaviour/shared-mutexes/exclusive",
  },
  "a request that has waited too long for a slot is sent where one becomes free before its check": {
    takesOut: ["protocol#requests-of-one-process: A wait for a slot"],
    "session/backlog.ts": { "(leftMs() > 0 ? end(() => resolve(send())) : late())": "end(() => resolve(send()))" },
    test: "session/scheduler",
  },
  "a request that is sure to come too late waits all the same": {
    takesOut: ["protocol#requests-of-one-process: A wait for a slot"],
    "session/backlog.ts": { "this.#soonestMs(ahead) > leftMs()": "this.#soonestMs(ahead) < 0" },
    test: "session/scheduler",
  },
  "a table that has just become active is missing": {
    takesOut: ["protocol#requests-of-one-process: A table that has just"],
    "dynamodb/transport.ts": { "NEW_FOR_MS = 10_000": "NEW_FOR_MS = 0" },
    test: "dynamodb/admin/create-table",
  },
  "a first attempt may take as long as the lease": {
    takesOut: ["protocol#requests-of-one-process: The first attempt"],
    "session/requests.ts": { "Math.max(50, ttlMs / 4)": "Math.max(50, ttlMs)" },
    test: "behaviour/network/first-attempt",
  },
  "a process takes nothing while a reply contradicts what it knows": {
    takesOut: ["protocol#wrong-dates: Takes go on"],
    "time/table-clock.ts": { "if (now.atMost - askedAt < CURRENT_AGE_MS) return true;": "" },
    test: "behaviour/network/wrong-date",
  },
  "a row that is not there is not taken": {
    takesOut: ["protocol#the-rows-states: no row"],
    "protocol/rules.ts": {
      "Condition => any(NO_ITEM, all(IS_OURS, ...more, ...ofToken, isOver))":
        "Condition => all(IS_OURS, ...more, isOver)",
    },
  },
  "the number of a run counts for a later tick": {
    takesOut: ["protocol#ticks: With untilSuccess"],
    "protocol/rules.ts": {
      'equal("tick", { value: "tick" }), equal("due", { value: "tick" }),': 'equal("due", { value: "tick" }),',
    },
    test: "behaviour/cron/until-success",
  },
  "a mark is written where nobody holds": {
    takesOut: ["protocol#late-copies: mark of a waiter", "protocol#turns 1"],
    "protocol/rules.ts": {
      "return { condition: IS_SOMEBODYS, values: {} };": "return { condition: IS_NOT_FOREIGN, values: {} };",
    },
    test: "behaviour/holding/wanted",
  },
  "a draw does not count": {
    takesOut: ["protocol#late-copies: drawing a ticket"],
    "protocol/rules.ts": {
      "return BigInt(from as number | bigint) + 1n;": "return BigInt(from as number | bigint) + 0n;",
    },
    test: "behaviour/fair/places",
  },

  // The queue: docs/guides/fair-queue.md.
  "a place is renewed as its lock is": {
    takesOut: ["queue#how-it-works: A place is a lease"],
    "queues/place.ts": {
      "return { ...settings, renewEveryMs, autoRenew: true,": "return { ...settings,",
    },
    test: "behaviour/fair/places",
  },
  "a busy process gathers nobody": {
    takesOut: ["queue#how-it-works: While its own sections run"],
    "queues/fair-queue.ts": { "GATHER_MS = 50": "GATHER_MS = 0" },
    test: "behaviour/fair/shared-places",
  },
  "tickets begin at 1": {
    takesOut: ["queue#how-it-works: Tickets come"],
    "queues/place.ts": { "seed: Math.ceil(boundsOf(clock).latest)": "seed: 0 * Math.ceil(boundsOf(clock).latest)" },
    test: "behaviour/fair/places",
  },

  // Shared mutexes: docs/design/protocol.md.
  "a reader waits for a row of its own": {
    takesOut: ["protocol#shared-mutexes 7"],
    "kinds/shared.ts": { 'if (result.kind !== "held") return result;': "return result;" },
    test: "behaviour/shared-mutexes/shared",
  },

  // The queue again: who may go by a look.
  "a place that was lost while it looked waits out a pause": {
    takesOut: ["queue#how-it-works: A process that loses"],
    "queues/fair-queue.ts": { "if (line.places.first !== place) return undefined;": "" },
    test: "behaviour/fair/shared-places",
  },
  "a place that a look for another caller has not reached is lost": {
    takesOut: ["queue#how-it-works: A process that loses"],
    "queues/fair-queue.ts": {
      "line.look(bid.ask, resource, { isConsistent })": "line.look(bid.ask, line.resource, { isConsistent })",
      "if (line.reaches(look, place)) place.lose();": "if (Boolean(1)) place.lose();",
    },
    test: "behaviour/semaphores/several-fair",
  },
  "a dead holder says how many permits there are": {
    takesOut: ["queue#how-it-works: A dead waiter"],
    "queues/fair-queue.ts": { "&& !looksFree(session, { at: row, settings }, row)": "" },
    test: "behaviour/semaphores/several-fair",
  },

  // How long a call may wait for others of its process: docs/design/protocol.md.
  "a call that does not wait ends before the claim ahead of it is answered": {
    takesOut: ["protocol#waiting 4"],
    "queues/sections.ts": {
      "call.progressNow = () => line.progressOf(undefined); line": "call.progressNow = () => undefined; line",
    },
    test: "behaviour/taking/wait-bounds",
  },
  "a try waits for a renewal of its process without a bound": {
    takesOut: ["protocol#waiting 3"],
    "kinds/shared.ts": { "await bid.answered(lease.renewals.renew())": "await lease.renewals.renew()" },
    test: "behaviour/shared-mutexes/shared",
  },
};
