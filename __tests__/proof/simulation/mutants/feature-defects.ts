import type { Defects } from "./defect.js";

/** Defects of features. What each breaks is a sentence of the page, or a rule in the file, that stands above it. */
export const FEATURE_DEFECTS: Defects = {
  // `lockAll`: docs/several-locks.md.
  "a set takes those of its locks that are free": {
    "testing/memory-table.ts": { 'wouldBe.some(({ kind }) => kind === "refused")': "false" },
  },
  "a set does not hear that one of its locks is lost": {
    "sets/lock-set.ts": {
      'lock.signal.addEventListener("abort", () => this.#look(), { once: true });': "void lock.signal;",
    },
  },
  "a set whose caller has gone gives back its first lock alone": {
    "sets/lock-all.ts": {
      "const { exit } of leases": "const { exit } of leases.slice(0, 1)",
    },
    "taking/abandoned-claims.ts": {
      "leases.slice(0, 2)": "leases.slice(0, 1)",
      "leases.slice(2)": "new Array<RowLease>()",
    },
  },
  "an own set on the rows is not recognised": {
    "taking/set-take.ts": {
      "new RowTake(session, sightings, target, { data })":
        "Object.assign(new RowTake(session, sightings, target, { data }), { isOfSet: true })",
    },
    "taking/row-take.ts": {
      "isOwn(row: Row | undefined): boolean {":
        "isOfSet = false; isOwn(row: Row | undefined): boolean { if (this.isOfSet) return false;",
    },
  },
  "a set watches each row that has refused it, one after the other": {
    "sets/set-watch.ts": { "held = await this.#nextHeld(held);": "held = refusers[refusers.indexOf(held) + 1];" },
    test: "behaviour/lock-set/free-rows",
  },
  "a set is asked for again as soon as the row that it watches is free": {
    "sets/set-watch.ts": { "held = await this.#nextHeld(held);": "held = undefined;" },
    test: "behaviour/lock-set/free-rows",
  },
  "a set forgets which rows have refused it before": {
    "sets/set-watch.ts": {
      "for (const inTheWay of refusers)": "this.#refusers.clear(); for (const inTheWay of refusers)",
    },
    test: "behaviour/lock-set/free-rows",
  },
  "a set releases its first lock alone": {
    "sets/lock-set.ts": {
      "this.#all.map((lock) => lock.unlock())": "this.#all.slice(0, 1).map((lock) => lock.unlock())",
    },
  },

  // `close()`: docs/shutdown.md.
  "the row of a revoked section is deleted at once": {
    "holding/lease.ts": {
      'return this.markLost("closed");':
        '{ const leaves = { kind: "free" } as const; void this.session.store.write({ ...this.row, kind: "vacate", attempt: undefined, leaves }, new AbortController().signal); return this.markLost("closed"); }',
    },
  },
  "the drain ignores the sections that run": {
    "session/closing.ts": { "=> this.#drainEnds - this.#clock.atLeast();": "=> 0;" },
  },
  "a close waits for the last section, however long that takes": {
    "session/closing.ts": { "#pauseWhile(() => this.remainingMs)": "#pauseWhile(() => 1_000)" },
  },
  "a close does not revoke the sections that run on": { "session/closing.ts": { "lease.revoke() ?? []": "[]" } },

  // Renewals that travel together: renewal-batches.ts; dynamodb/renewal-batches.test.ts finds others, such as a stamp that two rows share.
  "a renewal is judged by the outcome of another in its batch": {
    "dynamodb/renewal-batches.ts": { "this.#settle(member, outcomes[index])": "this.#settle(member, outcomes[0])" },
  },
  "the refusal of one renewal counts as the loss of its neighbours": {
    "dynamodb/renewal-batches.ts": {
      "this.#settle(member, outcomes[index])":
        'this.#settle(member, outcomes.find((one) => "kind" in one && one.kind === "refused") ?? outcomes[index])',
    },
  },
  "where batches cannot be used, those of the refused one count as renewed": {
    "dynamodb/renewal-batches.ts": {
      "member.settle(this.#sender.one(member.renewal, member.signal))":
        'member.settle({ kind: "applied", replaced: undefined, drawn: undefined })',
    },
  },
  "those of a batch without an answer count as renewed": {
    "dynamodb/renewal-batches.ts": {
      "for (const member of batch) this.#settle(member, error)":
        'for (const member of batch) this.#settle(member, { kind: "applied", replaced: undefined, drawn: undefined })',
    },
  },

  // `singleFlight()`: docs/single-flight.md.
  "a flight that was over before the call counts": {
    "flights/look.ts": {
      "return number > this.#overBy && found !== undefined && !this.#over.has(found.id);":
        "return found !== undefined;",
    },
  },
  "a flight counts that was over before another look": {
    "flights/look.ts": { "number > this.#overBy && ": "" },
    test: "behaviour/single-flight",
  },
  "a look waits until the one before is answered": {
    "flights/shared-looks.ts": {
      "await (before === undefined ? undefined : this.#whileDue(before))":
        "await before?.answered.catch(() => undefined)",
    },
    test: "behaviour/single-flight",
  },
  "a result is dated by the latest time that it may have been": {
    "flights/flights.ts": {
      "earliestOf(this.#session.clock.wall())": "Math.ceil(this.#session.clock.wall()?.latest ?? 0)",
    },
  },
  "which flights were over is read eventually consistent": {
    "flights/look.ts": { "consistent: isConsistent }": "consistent: false }" },
  },

  // Steps between the end of a function and the release: docs/protocol.md.
  "renewals move the end of a step after the work": {
    "holding/handle.ts": {
      "return this.#session.untilClosed(Math.max(this.#lease.settings.releaseWithinMs, leftMs));":
        "return () => (this.held ? this.#lease.deadline : this.#session.clock.atMost());",
    },
  },

  // `elect()`: docs/leader-election.md.
  "a candidate campaigns again without a pause": {
    "election.ts": { "await clock.sleep(pauseMs, ends)": "await clock.sleep(0, ends)" },
  },
  "a leader that has returned campaigns again": {
    "election.ts": { 'ends.aborted || term.outcome === "returned"': "ends.aborted" },
  },
  "a leader that resigns does not hear of it": {
    "election.ts": { "campaign(led, ends)": "campaign(led, new AbortController().signal)" },
  },

  // Ticks that are run until they succeed: docs/protocol.md.
  "the attempt that was seen is not compared": {
    "protocol/rules.ts": {
      'equal("due", { value: "tick" }), equal("attempt", { value: "seenAttempt" }),':
        'equal("due", { value: "tick" }),',
    },
  },
  "a success counts as recorded without an answer": {
    "holding/record-success.ts": {
      'if (recorded.kind === "ok") return;': 'if (recorded.kind === "ok" || !["lost"].includes(recorded.kind)) return;',
    },
  },
  "a row without a holder proves that a success was recorded": {
    "protocol/was-applied.ts": {
      "refusedBy.due !== write.tick && refusedBy.attempt === write.attempt":
        "refusedBy.uuid === undefined && refusedBy.attempt === write.attempt",
    },
  },
  "a lease whose section has an outcome to record is passed on": {
    "queues/fits.ts": { "lease.row.attempt !== undefined": "false" },
  },
  "an attempt that has begun is set back": {
    "taking/row-writes.ts": { "ran === undefined || releasing.hasBegun": "ran === undefined" },
  },
  "a run begins after the last one": {
    "taking/row-take.ts": { "next.attempt > maxAttempts ? { attempt: 1 } : next": "next" },
  },
};
