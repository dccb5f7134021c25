import type { Defects } from "./defect.js";

/** Defects of features. What each breaks is a sentence of the page, or a rule in the file, that stands above it. */
export const FEATURE_DEFECTS: Defects = {
  // `lockAll`: docs/guides/several-locks.md.
  "a set takes those of its locks that are free": {
    takesOut: ["protocol#taking: A set", "protocol#late-copies: take of a set"],
    "testing/memory-table.ts": { 'wouldBe.some(({ kind }) => kind === "refused")': "false" },
  },
  "a set does not hear that one of its locks is lost": {
    takesOut: ["several-locks#the-set"],
    "sets/lock-set.ts": {
      'lock.signal.addEventListener("abort", () => this.#look(), { once: true });': "void lock.signal;",
    },
  },
  "a set whose caller has gone gives back its first lock alone": {
    takesOut: ["trap 17", "protocol#taking: A set", "protocol#abandoned-claims: In the background"],
    "sets/lock-all.ts": {
      "const { exit } of leases": "const { exit } of leases.slice(0, 1)",
    },
    "taking/abandoned-claims.ts": {
      "leases.slice(0, 2)": "leases.slice(0, 1)",
      "leases.slice(2)": "new Array<RowLease>()",
    },
  },
  "an own set on the rows is not recognised": {
    takesOut: ["protocol#taking: A set", "protocol#late-copies: take of a set"],
    "taking/set-take.ts": {
      "new RowTake(session, target, { data }, uuidAt(index))":
        "Object.assign(new RowTake(session, target, { data }, uuidAt(index)), { isOfSet: true })",
    },
    "taking/row-take.ts": {
      "isOwn(row: Row | undefined): boolean {":
        "isOfSet = false; isOwn(row: Row | undefined): boolean { if (this.isOfSet) return false;",
    },
  },
  "a set watches each row that has refused it, one after the other": {
    takesOut: ["protocol#taking: A set"],
    "sets/set-watch.ts": { "held = await this.#nextHeld(held);": "held = refusers[refusers.indexOf(held) + 1];" },
    test: "behaviour/lock-set/free-rows",
  },
  "a set is asked for again as soon as the row that it watches is free": {
    takesOut: ["protocol#taking: A set"],
    "sets/set-watch.ts": { "held = await this.#nextHeld(held);": "held = undefined;" },
    test: "behaviour/lock-set/free-rows",
  },
  "a set forgets which rows have refused it before": {
    takesOut: ["protocol#taking: A set"],
    "sets/set-watch.ts": {
      "for (const inTheWay of refusers)": "this.#refusers.clear(); for (const inTheWay of refusers)",
    },
    test: "behaviour/lock-set/free-rows",
  },
  "a set releases its first lock alone": {
    takesOut: ["trap 5", "several-locks#the-set"],
    "sets/lock-set.ts": {
      "await this.#each((lock) => lock.unlock());": "await this.#all[0]?.unlock();",
    },
  },
  "a set whose first lock was lost while another was renewed is extended": {
    takesOut: ["several-locks#the-set"],
    "sets/lock-set.ts": {
      "await this.#each((lock) => lock.extend(options));\n    this.signal.throwIfAborted();":
        "await this.#each((lock) => lock.extend(options));",
    },
    test: "behaviour/lock-set/lock-set",
  },

  // `close()`: docs/guides/shutdown.md.
  "the row of a revoked section is deleted at once": {
    takesOut: ["trap 30", "protocol#closing", "shutdown#what-is-promised: Nobody else gets"],
    "holding/lease.ts": {
      'return this.markLost("closed");':
        '{ const leaves = { kind: "free" } as const; void this.session.store.write({ ...this.row, kind: "vacate", attempt: undefined, leaves }, new AbortController().signal); return this.markLost("closed"); }',
    },
  },
  "the drain ignores the sections that run": {
    takesOut: ["locks#while-you-hold-it: close()", "protocol#closing"],
    "session/closing.ts": { "=> this.#drainEnds - this.#clock.atLeast();": "=> 0;" },
  },
  "a close waits for the last section, however long that takes": {
    takesOut: ["trap 34", "shutdown#what-is-promised: One bound"],
    "session/closing.ts": { "#pauseWhile(() => this.remainingMs)": "#pauseWhile(() => 1_000)" },
  },
  "create() changes a table that it did not make": {
    takesOut: ["table#the-table"],
    "dynamodb/admin/create-table.ts": { "if (!isMade && !enableTtl) return;": "if (Boolean(0)) return;" },
    test: "dynamodb/admin/create-table",
  },
  "a close does not know that a section has called it": {
    takesOut: ["locks#while-you-hold-it: close()"],
    "session/section-stack.ts": { "functionsOnStack().includes(name)": "false" },
    test: "behaviour/closing-inside",
  },
  "a close does not revoke the sections that run on": {
    takesOut: ["trap 30", "shutdown#what-is-promised: A revoked section"],
    "session/closing.ts": { "lease.revoke() ?? []": "[]" },
  },

  // Renewals that travel together: renewal-batches.ts; dynamodb/renewal-batches.test.ts finds others, such as a stamp that two rows share.
  "a renewal is judged by the outcome of another in its batch": {
    takesOut: ["trap 41", "protocol#keeping: Each statement"],
    "dynamodb/renewal-batches.ts": { "this.#settle(member, outcomes[index])": "this.#settle(member, outcomes[0])" },
    test: "dynamodb/renewal-batches",
  },
  "the refusal of one renewal counts as the loss of its neighbours": {
    takesOut: ["trap 41", "protocol#keeping: Each statement"],
    "dynamodb/renewal-batches.ts": {
      "this.#settle(member, outcomes[index])":
        'this.#settle(member, outcomes.find((one) => "kind" in one && one.kind === "refused") ?? outcomes[index])',
    },
    test: "dynamodb/renewal-batches",
  },
  "where batches cannot be used, those of the refused one count as renewed": {
    takesOut: ["protocol#keeping: Without the permission"],
    "dynamodb/renewal-batches.ts": {
      "member.settle(this.#sender.one(member.renewal, member.signal))":
        'member.settle({ kind: "applied", replaced: undefined, drawn: undefined })',
    },
    test: "dynamodb/renewal-batches",
  },
  "those of a batch without an answer count as renewed": {
    takesOut: ["trap 41", "protocol#keeping: Each statement"],
    "dynamodb/renewal-batches.ts": {
      "for (const member of batch) this.#settle(member, error)":
        'for (const member of batch) this.#settle(member, { kind: "applied", replaced: undefined, drawn: undefined })',
    },
    test: "dynamodb/renewal-batches",
  },

  // `singleFlight()`: docs/guides/single-flight.md.
  "a flight that was over before the call counts": {
    takesOut: ["single-flight#what-is-promised: With freshMs: 0"],
    "flights/look.ts": {
      "return number > this.#overBy && found !== undefined && !this.#over.has(found.id);":
        "return found !== undefined;",
    },
  },
  "a flight counts that was over before another look": {
    takesOut: ["single-flight#what-is-promised: With freshMs: 0"],
    "flights/look.ts": { "number > this.#overBy && ": "" },
    test: "behaviour/single-flight",
  },
  "a look waits until the one before is answered": {
    takesOut: ["single-flight#what-is-promised: Every call ends"],
    "flights/shared-looks.ts": {
      "await (before === undefined ? undefined : this.#whileDue(before))":
        "await before?.answered.catch(() => undefined)",
    },
    test: "behaviour/single-flight",
  },
  "a result is dated by the latest time that it may have been": {
    takesOut: ["single-flight#what-is-promised: No result is older"],
    "flights/flights.ts": {
      "earliestOf(this.#session.clock.wall())": "Math.ceil(this.#session.clock.wall()?.latest ?? 0)",
    },
    test: "behaviour/single-flight",
  },
  "which flights were over is read eventually consistent": {
    takesOut: ["single-flight#what-is-promised: With freshMs: 0"],
    "flights/look.ts": { "consistent: isConsistent, ...told }": "consistent: false, ...told }" },
    test: "behaviour/single-flight",
  },

  // Steps between the end of a function and the release: docs/design/protocol.md.
  "renewals move the end of a step after the work": {
    takesOut: ["protocol#releasing: A step before"],
    "holding/handle.ts": {
      "return this.#session.untilClosed(Math.max(this.#lease.settings.releaseWithinMs, leftMs));":
        "const ends = this.#session.untilClosed(Math.max(this.#lease.settings.releaseWithinMs, leftMs)); return () => (this.held ? this.#lease.deadline : ends());",
    },
    test: "behaviour/cron/until-success",
  },

  // `elect()`: docs/guides/leader-election.md.
  "a candidate campaigns again without a pause": {
    takesOut: ["leader-election#the-steps 5", "trap 31"],
    "election.ts": { "await clock.sleep(pauseMs, ends)": "await clock.sleep(0, ends)" },
  },
  "a leader that has returned campaigns again": {
    takesOut: ["leader-election#the-steps 4"],
    "election.ts": { 'ends.aborted || term.outcome === "returned"': "ends.aborted" },
  },
  "a leader that resigns does not hear of it": {
    takesOut: ["leader-election#the-steps 2"],
    "election.ts": { "campaign(led, ends)": "campaign(led, new AbortController().signal)" },
  },

  // Semaphores with a rate: docs/design/protocol.md.
  "a permit with a rate is free as soon as its section has ended": {
    takesOut: ["protocol#semaphores: With perMs", "semaphores#what-is-promised: With perMs"],
    "section-calls.ts": { "perMs === 0 ? 0 : perMs + 1": "perMs === 0 ? 0 : 0" },
  },
  "a permit is handed out on a lease that ends before its period": {
    takesOut: ["protocol#semaphores: With perMs", "semaphores#what-is-promised: With perMs"],
    "holding/renewals.ts": {
      "!isHalfGone(this.#session, row) && coversPeriod(this.#session, row)": "!isHalfGone(this.#session, row)",
    },
    test: "behaviour/semaphores/rate",
  },
  "a lease may be shorter than the period of its rate": {
    takesOut: ["protocol#semaphores: With perMs"],
    "options/semaphore.ts": { "if (ttlMs <= leastMs) {": "if (ttlMs <= leastMs && perMs === 0) {" },
    test: "behaviour/semaphores/rate",
  },

  // Ticks by a function of the table's time: docs/design/protocol.md.
  "a tick is asked for before it has certainly begun": {
    takesOut: ["protocol#ticks: A tick by the table's clock"],
    "taking/known-time.ts": {
      "return once.tickAt(Math.floor(bounds.earliest))": "return once.tickAt(Math.ceil(bounds.latest) + once.earlyMs)",
    },
  },
  "a host that fires early is told done of the tick before": {
    takesOut: ["protocol#ticks: A tick by the table's clock", "protocol#ticks: The function is called"],
    "taking/known-time.ts": { "Math.ceil(latest) + earlyMs - from": "Math.ceil(latest) - from" },
    test: "behaviour/cron/named-ticks",
  },
  "the next fire of a schedule is taken for a tick": {
    takesOut: ["protocol#ticks: A function is checked"],
    "taking/known-time.ts": { "if (tick > ms) {": "if (tick > ms && ms === 0) {" },
    test: "behaviour/cron/named-ticks",
  },
  "a function whose ticks go back is believed": {
    takesOut: ["protocol#ticks: A function is checked"],
    "taking/known-time.ts": { "if (tick > later) {": "if (tick > later && tick === 0) {" },
    test: "behaviour/cron/named-ticks",
  },
  "a call waits for ever where ticks are nearer than the clock can tell": {
    takesOut: ["protocol#ticks: Bounds that are wider"],
    "taking/known-time.ts": { "return tickAt(from + since + spanMs) === later ? since : 0;": "return since;" },
    test: "behaviour/cron/named-ticks",
  },

  // Ticks that are run until they succeed: docs/design/protocol.md.
  "the attempt that was seen is not compared": {
    takesOut: ["protocol#ticks: The first form"],
    "protocol/rules.ts": {
      'equal("due", { value: "tick" }), equal("attempt", { value: "seenAttempt" }),':
        'equal("due", { value: "tick" }),',
    },
    test: "behaviour/cron/due-ticks",
  },
  "a success counts as recorded without an answer": {
    takesOut: ["protocol#ticks: The success"],
    "holding/record-success.ts": {
      'if (recorded.kind === "ok") return;': 'if (recorded.kind === "ok" || !["lost"].includes(recorded.kind)) return;',
    },
  },
  "a row without a holder proves that a success was recorded": {
    takesOut: ["protocol#ticks: The success"],
    "protocol/was-applied.ts": {
      "refusedBy.due !== write.tick && refusedBy.attempt === write.attempt":
        "refusedBy.uuid === undefined && refusedBy.attempt === write.attempt",
    },
  },
  "a lease whose section has an outcome to record is passed on": {
    takesOut: ["protocol#ticks: Answers are judged"],
    "kinds/kind.ts": { "lease.row.attempt !== undefined": "false" },
    test: "behaviour/cron/until-success",
  },
  "a tick that was granted and has not begun is shown as run": {
    takesOut: ["protocol#ticks: A lease given back"],
    "protocol/rules.ts": { 'isUnbegun ? ["uuid", "wanted", "ran"] :': 'isUnbegun ? ["uuid", "wanted"] :' },
    test: "behaviour/closing",
  },
  "an attempt that has begun is set back": {
    takesOut: ["protocol#ticks: A lease given back"],
    "taking/row-writes.ts": { "lease.tick !== undefined && !releasing.hasBegun": "lease.tick !== undefined" },
  },
  "a run begins after the last one": {
    takesOut: ["protocol#ticks: Answers are judged"],
    "taking/row-take.ts": { "next.attempt > maxAttempts ? { attempt: 1 } : next": "next" },
  },
  "a value that changes on the way is shared": {
    takesOut: ["single-flight#what-can-be-shared"],
    "flights/flights.ts": { "store.admitResult(shared);": "store.admit(shared);" },
    test: "behaviour/single-flight",
  },
  "an error is shared": {
    takesOut: ["single-flight#what-is-promised: An error is never shared"],
    "flights/flights.ts": {
      "const value = await fn(held);":
        "const value = await Promise.resolve(fn(held)).catch((error: unknown) => error as T);",
    },
    test: "behaviour/single-flight",
  },
  "an observer reads eventually consistent": {
    takesOut: ["leader-election#what-is-promised: An observer"],
    "operations/observe.ts": { "{ consistent: true }": "{ consistent: false }" },
    test: "behaviour/election/observe",
  },
  "an observer shows a leader again that was gone": {
    takesOut: ["leader-election#what-is-promised: An observer", "trap 45"],
    "operations/observe.ts": { "|| row.uuid === over": "" },
    test: "behaviour/election/observe",
  },
  "a campaign that fails ends the election": {
    takesOut: ["leader-election#the-steps 1"],
    "election.ts": { 'ends.aborted || term.outcome === "returned"': 'ends.aborted || term.outcome !== "ended"' },
    test: "behaviour/election/election",
  },
  "a leader is not told that its table closes": {
    takesOut: ["leader-election#the-steps"],
    "election.ts": { "follow([session.closing, signal]": "follow([signal]" },
    test: "behaviour/election/election",
  },
};
