import type { Defects } from "./defect.js";

/** Defects of semaphores, shared mutexes and hand-offs. What each breaks is said in lib/kinds/ and lib/taking/. */
export const KIND_DEFECTS: Defects = {
  "a permit is taken whatever its row says": {
    takesOut: ["protocol#semaphores", "semaphores#what-is-promised: At most permits"],
    "protocol/rules.ts": {
      "let takes = TAKES_EXPIRED;":
        'let takes = write.at.sort.startsWith("semaphore#") ? inEachForm(() => takesOver(all())) : TAKES_EXPIRED;',
    },
  },
  "a caller takes a permit beyond its number": {
    takesOut: ["protocol#semaphores", "semaphores#what-is-promised: At most permits"],
    "kinds/permits.ts": { "Array.from({ length: end }": "Array.from({ length: end + 1 }" },
  },
  "a reader is let in while a writer has its row": {
    takesOut: ["protocol#shared-mutexes 1", "shared-mutexes#what-is-promised: No section"],
    "kinds/shared.ts": { "untilNoWriter(session, resource, bid)": "Promise.resolve(undefined)" },
  },
  "a reader looks for a writer before its own row is there": {
    takesOut: ["protocol#shared-mutexes 1", "shared-mutexes#what-is-promised: No section"],
    "kinds/shared.ts": {
      "const result = await takeRow(session, claimed, { at: readerAt(name, session.uuid()), settings });":
        "const early = await lookForWriter(session, resource, bid); const result = await takeRow(session, claimed, { at: readerAt(name, session.uuid()), settings });",
      "untilNoWriter(session, resource, bid)": "Promise.resolve(early)",
    },
    test: "behaviour/shared-mutexes/shared",
  },
  "a reader looks for a writer by a read that may be stale": {
    takesOut: ["protocol#shared-mutexes 1"],
    "kinds/shared-mutex-rows.ts": {
      "readWriter(session, resource, bid, { isConsistent: true })":
        "readWriter(session, resource, bid, { isConsistent: false })",
    },
    test: "behaviour/shared-mutexes/dead-writers",
  },
  "a reader judges a writer by what is known when the reply comes": {
    takesOut: ["trap 39", "protocol#shared-mutexes 2"],
    "kinds/shared-mutex-rows.ts": {
      "return { known: before, row: await session.store.read(target.at, { consistent }, signal) };":
        "const row = await session.store.read(target.at, { consistent }, signal); return { known: { ...before, ...knownNow(session, resource.settings.takeover) }, row };",
    },
    test: "behaviour/shared-mutexes/shared",
  },
  "a writer takes a reader for dead by the latest time it may be": {
    takesOut: ["protocol#shared-mutexes 2"],
    "kinds/shared-mutex-rows.ts": {
      "!isDead(session, row, page)": "!isDead(session, row, { ...page, earliest: session.clock.wall()?.latest ?? 1 })",
    },
  },
  "a writer looks for readers by a query that may be stale": {
    takesOut: ["protocol#shared-mutexes 1"],
    "kinds/shared-mutex-rows.ts": {
      "limit: READERS_LIMIT, consistent: true": "limit: READERS_LIMIT, consistent: false",
    },
    test: "behaviour/shared-mutexes/exclusive",
  },
  "a writer does not look for readers": {
    takesOut: ["protocol#shared-mutexes 1", "shared-mutexes#what-is-promised: No section"],
    "kinds/exclusive.ts": {
      "const { found, alive } = await lookForReaders(this.session, resource, bid)":
        "const { found, alive }: Awaited<ReturnType<typeof lookForReaders>> = { found: false }",
    },
  },
  "a dead reader is removed, renewed or not": {
    takesOut: ["protocol#shared-mutexes 3", "protocol#late-copies: takeover of an unchanged row"],
    "taking/rows.ts": {
      "const known = knownNow(session, takeover); return { ...(await session.store.query(query, signal)), ...known };":
        "const sentAt = session.clock.atMost(); const page = await session.store.query(query, signal); return { ...page, ...knownNow(session, takeover), sentAt };",
      'const write = { kind: "remove", at: { name, sort }, seenUuid, seenExpires } as const;':
        'const write = seenUuid === undefined ? ({ kind: "remove", at: { name, sort }, seenUuid, seenExpires } as const) : ({ kind: "vacate", at: { name, sort }, uuid: seenUuid, leaves: { kind: "free" }, remembers: "nothing" } as const);',
    },
    test: "behaviour/shared-mutexes/exclusive",
  },
  "a renewal mends the lapse of a writer that waits": {
    takesOut: ["protocol#shared-mutexes 4"],
    "queues/sections.ts": { "mayLapse: resource.kind.rowDecides": "mayLapse: true" },
    "kinds/exclusive.ts": {
      "lease.watch(WAITING_WRITER);": "",
      "while (lease.held)": "while (true)",
      "if (!lease.held)": "if (false)",
    },
    test: "behaviour/shared-mutexes/exclusive",
  },
  "dead readers are let be, and a renewal mends their lapse": {
    takesOut: ["protocol#shared-mutexes 3", "protocol#shared-mutexes 4"],
    "kinds/shared-mutex-rows.ts": {
      "return { found };": "return { found: false };",
      "await Promise.all(page.rows.map((row) => remove(session, row, settings.ttlMs, bid)));": "",
    },
    "queues/sections.ts": { "mayLapse: resource.kind.rowDecides": "mayLapse: true" },
  },
  "a writer that gives up keeps its row": {
    takesOut: ["shared-mutexes#what-is-promised: A writer that gives up"],
    "kinds/shared-mutex-rows.ts": { "let isGranted = false;": "let isGranted = true;" },
  },
  "sections join others without a look for a writer": {
    takesOut: ["protocol#shared-mutexes 6", "shared-mutexes#what-is-promised: Writers are not starved"],
    "kinds/shared.ts": { "now - own.lookedAt < own.resource.settings.handOverMs": "true" },
  },
  "sections join others although a writer was seen": {
    takesOut: ["protocol#shared-mutexes 6", "shared-mutexes#what-is-promised: Writers are not starved"],
    "kinds/shared.ts": { "own.close();": "return undefined;" },
    test: "behaviour/shared-mutexes/shared",
  },
  "the first section that ends takes the row from those that share it": {
    takesOut: ["protocol#shared-mutexes 6"],
    "queues/sections.ts": { "if (!lease.endUse(section)) {": "if ((lease.endUse(section), false)) {" },
  },
  "a token is resumed twice": {
    takesOut: [
      "hand-off#what-is-promised: A token is used once",
      "protocol#late-copies: transfer of a hand-off",
      "protocol#hand-off 2",
      "hand-off#what-is-promised: One holder",
    ],
    "protocol/rules.ts": {
      "TRANSFERS = withToken(IS_MINE)": "TRANSFERS = withToken(IS_SOMEBODYS)",
    },
  },
  "a token is the uuid that everybody sees": {
    takesOut: [
      "trap 43",
      "protocol#hand-off",
      "hand-off#what-is-promised: Nobody resumes",
      "guarantees#networks-and-crashes: A lock that is handed off",
      "protocol#the-rows-states: handed off",
    ],
    "holding/hand-off-token.ts": {
      'return createHash("sha256").update(`hand-off/${secret}`).digest("hex");': "return secret;",
    },
  },
  "a lock that is handed off keeps the length of its lease": {
    takesOut: ["protocol#hand-off"],
    "protocol/rules.ts": {
      "update({ uuid, expires, ttlMs, owner, handOff }": "update({ uuid, expires, owner, handOff }",
    },
  },
  "a late copy of the take is handed off once more": {
    takesOut: ["protocol#late-copies: transfer of a hand-off", "hand-off#what-is-promised: A token is used once"],
    "protocol/rules.ts": { "if (after === undefined)": "if (true)" },
    "holding/exit.ts": { "guardOf(row) === undefined ? await renew(this.#session, row, trying) : ": "" },
    test: "behaviour/hand-off/hand-off",
  },
  "a lock is handed off under its own uuid": {
    takesOut: ["protocol#hand-off"],
    "taking/row-writes.ts": { "const { uuid } = handOff;": "const { uuid } = lease;" },
  },
  "a resumed lock draws no token": {
    takesOut: ["protocol#hand-off"],
    "holding/resume.ts": {
      "fencing ? tokenDraw(bounds, fence) : undefined": "undefined",
      'const drawn = outcome.kind === "applied" ? outcome.drawn : outcome.row?.fence;': "const drawn = undefined;",
    },
  },
  "what an abandoned resumption takes is not given back": {
    takesOut: ["protocol#hand-off 4", "hand-off#what-is-promised: A hand-off that fails"],
    "holding/resume.ts": { "session.detach(removeWhenItArrives(session, maybe, remainingHold(session, handed)));": "" },
    test: "behaviour/hand-off/hand-off",
  },
  "callers that know of different numbers of permits wait in one line": {
    takesOut: ["protocol#semaphores"],
    "queues/sections.ts": {
      "const { permits, settings, weight } = resource;": "const { settings, weight } = resource; const permits = 0;",
    },
    test: "behaviour/semaphores/hand-over",
  },
  "a lease passes to a caller that knows of fewer permits": {
    takesOut: ["semaphores#what-is-promised: At most permits"],
    "kinds/kind.ts": { "(permitOf(at.sort) ?? 0) >= permits": "(permitOf(at.sort) ?? 0) >= 1_000" },
    test: "behaviour/semaphores/hand-over",
  },
  "a lock of several permits goes on without one of them": {
    takesOut: ["protocol#semaphores: Several permits", "semaphores#what-is-promised: A lock of several permits"],
    "taking/row-writes.ts": {
      'all.find(({ kind }) => kind === "lost") ?? all.find(({ kind }) => kind === "unknown") ?? head': "head",
    },
    test: "behaviour/semaphores/several",
  },
  "what is left of several permits is kept when one is lost": {
    takesOut: ["protocol#semaphores: Several permits"],
    "holding/exit.ts": { "if (mayBeOurs || this.#lease.row.others !== undefined)": "if (mayBeOurs)" },
    test: "behaviour/semaphores/several",
  },
  "a release does not wait for a reissue in flight": {
    takesOut: ["protocol#releasing 1"],
    "holding/exit.ts": { "if (this.#lease.writing?.isReissue) await this.#lease.endWriting();": "" },
    test: "behaviour/holding/unlock-in-time",
  },
  "a renewal that is answered after its release counts": {
    takesOut: ["protocol#releasing 1"],
    "holding/term.ts": { 'if (this.isOver) return { kind: "unknown"': 'if (Boolean(0)) return { kind: "unknown"' },
    test: "behaviour/holding/unlock-in-time",
  },
  "a release that goes on keeps the process alive": {
    takesOut: ["protocol#releasing 4"],
    "taking/row-writes.ts": { "...(isDetached && { sleep: sleepUnheeded(clock) })": "" },
    test: "behaviour/holding/unlock-in-time",
  },
  "a look before a lease passes on has a time of its own": {
    takesOut: ["protocol#releasing: unlock() has one deadline"],
    "queues/turns.ts": { "{ until: () => until }": "{}" },
    test: "behaviour/holding/unlock-in-time",
  },
  "a look at the queue before a lease passes on has a time of its own": {
    takesOut: ["protocol#releasing: unlock() has one deadline"],
    "queues/fair-queue.ts": {
      "firstTimeoutMs(settings.ttlMs), until: () => until }": "firstTimeoutMs(settings.ttlMs) }",
    },
    test: "behaviour/holding/unlock-in-time",
  },
  "what a lease needs before it passes on has a time of its own": {
    takesOut: ["protocol#releasing: unlock() has one deadline"],
    "holding/renewals.ts": {
      "Math.min(until, this.#term.usableUntil)":
        "Math.min(this.#session.clock.atMost() + settings.releaseWithinMs, this.#term.usableUntil)",
    },
    test: "behaviour/holding/unlock-in-time",
  },
  "a new uuid for the next caller waits for the renewal in flight, however long that takes": {
    takesOut: ["protocol#releasing: unlock() has one deadline"],
    "holding/renewals.ts": {
      "await answeredWithin(this.#session.clock, until - this.#session.clock.atMost(), this.#term.endWriting());":
        "await this.#term.endWriting();",
    },
    test: "behaviour/holding/unlock-in-time",
  },
  "permits that were taken together look like several acquisitions": {
    takesOut: ["protocol#semaphores: Several permits"],
    "protocol/row.ts": { "acquisitionOf({ sort, uuid: row.uuid })": "(sort ? row.uuid : row.uuid)" },
    test: "behaviour/semaphores/several",
  },
  "a reissue gives each permit an acquisition of its own": {
    takesOut: ["protocol#semaphores: Several permits"],
    "taking/row-writes.ts": { "trying, memberUuid(uuid, index))": "trying, index < 0 ? uuid : undefined)" },
    test: "behaviour/semaphores/several",
  },
  "the time of a release counts from when the release leaves": {
    takesOut: ["protocol#releasing: unlock() has one deadline"],
    "holding/exit.ts": { "this.#ending ?? this.endingNow()": "this.endingNow()" },
    test: "behaviour/holding/unlock-in-time",
  },
  "a release of an expired lease takes as long as an attempt": {
    takesOut: ["protocol#releasing: unlock() has one deadline"],
    "holding/exit.ts": {
      "Math.min(answerBy, end())": "(this.#lease.hasRunOut ? end() : Math.min(answerBy, end()))",
    },
    test: "behaviour/holding/unlock-in-time",
  },
  "a release ends with the answer of its caller": {
    takesOut: ["protocol#releasing 4", "hand-off#what-is-promised: A hand-off that fails"],
    "holding/exit.ts": { 'if (released.kind === "unknown" && leftMs > 0)': "if (Boolean(0))" },
    test: "behaviour/holding/unlock-in-time",
  },
  "a hand-off that nobody got is released until the lease would have ended": {
    takesOut: ["protocol#hand-off 1", "hand-off#what-is-promised: A hand-off that fails"],
    "holding/exit.ts": { "this.#vacateBy(ending, written.lease, ttlMs)": "this.#vacateBy(ending, written.lease)" },
    test: "behaviour/hand-off/hand-off",
  },
  "a hand-off has all of the time, and a release of it none": {
    takesOut: ["protocol#releasing: unlock() has one deadline", "protocol#hand-off 1"],
    "holding/exit.ts": { "Math.min(ending.halfAt, usableUntil)": "Math.min(ending.answerBy, usableUntil)" },
    test: "behaviour/holding/unlock-in-time",
  },
  "of two uuids the first has all of the time": {
    takesOut: ["protocol#releasing 4"],
    "taking/row-writes.ts": { "(): number => Math.min(halfAt, until())": "until" },
    test: "behaviour/holding/unlock-in-time",
  },
  "a row that still has its uuid counts as released": {
    takesOut: ["protocol#releasing 4"],
    "taking/row-writes.ts": {
      "return first; return other.applied ===": 'return { ...other, applied: "yes" }; return other.applied ===',
    },
    test: "behaviour/holding/unlock-in-time",
  },
  "a lease that has run out during its release counts as held": {
    takesOut: ["protocol#releasing 4"],
    "queues/line.ts": { "filter(({ lease }) => !lease.hasRunOut)": "filter(() => true)" },
    test: "behaviour/holding/unlock-in-time",
  },
  "a section that has outlasted maxHoldMs is not released": {
    takesOut: ["protocol#losing"],
    "holding/exit.ts": { 'reason === "expired" || reason === "max-hold" ||': 'reason === "expired" ||' },
    test: "behaviour/holding/unlock-in-time",
  },
  "a resume forgets the hold of the lock": {
    takesOut: ["trap 44", "protocol#hand-off 2"],
    "holding/resume.ts": { "lease.exit.hold = remainingHold(session, handed);": "" },
    test: "behaviour/hand-off/tokens",
  },
  "a resume is sent although the time of its token has passed": {
    takesOut: ["protocol#hand-off 3"],
    "holding/resume.ts": { "if (boundsOf(clock).earliest > handed.expires)": "if (Boolean(0))" },
    test: "behaviour/hand-off/hand-off",
  },
  "a hand-off without an answer is released under one uuid": {
    takesOut: ["protocol#hand-off 1", "hand-off#what-is-promised: A hand-off that fails"],
    "taking/row-writes.ts": {
      "if (maybeUuid === undefined || (first": "if (Boolean(1) || maybeUuid === undefined || (first",
    },
    test: "behaviour/hand-off/hand-off",
  },
  "a token of another table is resumed": {
    takesOut: ["hand-off#what-is-promised: A token for another table"],
    "holding/hand-off-token.ts": { "if (tableName !== plainName(table.tableName)) {": "if (Boolean(0)) {" },
    test: "behaviour/hand-off/hand-off",
  },
  "a lock of several permits is handed off by one of them": {
    takesOut: ["protocol#semaphores: A lock of several permits"],
    "holding/handle.ts": { "if (this.#lease.row.others !== undefined)\n      remedy": "if (Boolean(0))\n      remedy" },
    test: "behaviour/semaphores/several",
  },
  "a token with parts of its own is looked up": {
    takesOut: ["hand-off#what-is-promised: A token for another table"],
    "holding/hand-off-token.ts": { "parts.length === 5": "parts.length >= 5" },
    test: "behaviour/hand-off/tokens",
  },
  "those in line take any free permit": {
    takesOut: ["protocol#semaphores: In a queue", "semaphores#what-is-promised: With fair: true"],
    "kinds/semaphore.ts": {
      "const inOrder = ahead === undefined ? fromAnywhere(free, session.random) : free.slice(ahead);":
        "const inOrder = fromAnywhere(free, session.random);",
    },
    test: "behaviour/semaphores/fair",
  },
  "a place says how many sections share it, whatever they need": {
    takesOut: ["protocol#semaphores: A place says in sections"],
    "queues/place.ts": { "return { sections: permits, callers: sections };": "return { sections };" },
    test: "behaviour/semaphores/several-fair",
  },
  "nobody marks a permit": {
    takesOut: ["protocol#semaphores: A waiter marks", "semaphores#what-is-promised: A process that passes permits on"],
    "kinds/semaphore.ts": { "if (one !== undefined) await mark(": "if (one !== undefined && Boolean(0)) await mark(" },
    test: "behaviour/semaphores/hand-over",
  },
  "a reader that has seen a writer puts its flag without a look": {
    takesOut: ["protocol#shared-mutexes 5"],
    "kinds/shared.ts": { "if (!session.sightings.mayBeFree(at, settings.takeover)) {": "if (Boolean(0)) {" },
    test: "behaviour/shared-mutexes/shared",
  },
  "a reader leaves the row of a dead writer": {
    takesOut: ["protocol#shared-mutexes 3", "shared-mutexes#what-is-promised: A guard of either side"],
    "kinds/shared-mutex-rows.ts": {
      "if (writer !== undefined || row?.uuid === undefined) return writer;": "if (row !== null) return writer;",
    },
    test: "behaviour/shared-mutexes/dead-writers",
  },
  "readers go before a place of a writer": {
    takesOut: ["shared-mutexes#what-is-promised: With fair: true"],
    "kinds/shared.ts": { 'data?.side === "shared" ? 0 : Number.POSITIVE_INFINITY': "0" },
    test: "behaviour/shared-mutexes/exclusive",
  },
};
