import type { Defects } from "./defect.js";

/** Defects of who is believed, and of what counts as certain. */
export const NETWORK_DEFECTS: Defects = {
  "a late timer judges a reply that waits in the socket": {
    takesOut: ["protocol#requests-of-one-process: A late timer judges no reply"],
    "time/clock.ts": { "else cancel = clock.afterPoll(ring);": "else ring();" },
  },
  "the table's clock does not say when the sockets were polled": {
    takesOut: ["protocol#requests-of-one-process: A late timer judges no reply"],
    "time/table-clock.ts": { "...(afterPoll && { afterPoll }),": "" },
    test: "behaviour/holding/busy-sections",
  },
  "the timeout of an attempt does not wait for the sockets": {
    takesOut: ["protocol#requests-of-one-process: A late timer judges no reply"],
    "session/requests.ts": {
      "const cancel = replyAlarm(clock, boundMs, () => reject(end()));":
        "const cancel = clock.alarm(boundMs, () => reject(end()));",
    },
    test: "behaviour/holding/busy-sections",
  },
  "a wait for another's answer does not wait for the sockets": {
    takesOut: ["protocol#requests-of-one-process: A late timer judges no reply"],
    "session/overdue.ts": { "replyAlarm(clock, Math.max(0, ms),": "clock.alarm(Math.max(0, ms)," },
    test: "behaviour/holding/busy-sections",
  },
  "a connection is given up while it is there": {
    takesOut: ["protocol#requests-of-one-process: A late timer judges no reply"],
    "dynamodb/connections.ts": {
      "const cancel = replyAlarm(timers, connectMs, () => {":
        "const cancel = replyAlarm({ alarm: timers.alarm }, connectMs, () => {",
    },
    test: "behaviour/holding/busy-sections",
  },
  "a loss does not say that the process did not run": {
    takesOut: ["protocol#losing"],
    "holding/term.ts": { "if (ms < ttlMs * STALL_SHARE) return undefined;": "return undefined;" },
    test: "behaviour/holding/busy-sections",
  },
  "somebody else's reply is an answer until the table has answered": {
    takesOut: ["trap 48", "protocol#requests-of-one-process: A reply without"],
    "dynamodb/table-sign.ts": { "if (isSigned(headers)) {": "if (!this.#isKnown || isSigned(headers)) {" },
    test: "behaviour/network/foreign-replies",
  },
  "somebody else's reply is an answer once the table is known": {
    takesOut: ["trap 48", "protocol#requests-of-one-process: A reply without"],
    "dynamodb/table-sign.ts": { "if (isSigned(headers)) {": "if (this.#isKnown || isSigned(headers)) {" },
    test: "behaviour/network/foreign-replies",
  },
  "the first reply without the sign is final": {
    takesOut: ["protocol#requests-of-one-process: An address that never signs"],
    "dynamodb/table-sign.ts": { "return now - this.#unsigned.first > PATIENCE_MS;": "return true;" },
    test: "behaviour/network/never-signed",
  },
  "an endpoint that never signs is asked for as long as a table that is silent": {
    takesOut: ["protocol#requests-of-one-process: An address that never signs"],
    "dynamodb/table-sign.ts": { "return now - this.#unsigned.first > PATIENCE_MS;": "return false;" },
    test: "behaviour/network/never-signed",
  },
  "a mock of the class is taken for the library's own client": {
    takesOut: ["protocol#requests-of-one-process: A client whose"],
    "dynamodb/transport.ts": { "#isSeen = false;": "#isSeen = true;" },
    test: "behaviour/network/never-signed",
  },
  "a reply that cannot be read is final, and certain": {
    takesOut: ["trap 50", "protocol#requests-of-one-process: A failure is certain"],
    "dynamodb/failures.ts": { "const isSilence = hasLeft === true && !answered;": "const isSilence = false;" },
  },
  "what follows a failure without a reply goes out on an old connection": {
    takesOut: ["trap 49", "protocol#requests-of-one-process: An attempt without a reply"],
    "dynamodb/connections.ts": { "if (this.#sentAtAnswer < number)": "if (this.#sentAtAnswer < -number)" },
    test: "dynamodb/connections",
  },
  "a slow table loses its pool of connections": {
    takesOut: ["protocol#requests-of-one-process: An attempt without a reply"],
    "dynamodb/connections.ts": {
      "if (this.#sentAtAnswer < number)": "if (this.#sentAtAnswer <= Number.MAX_SAFE_INTEGER)",
    },
    test: "dynamodb/connections",
  },
  "AWS_RETRY_MODE is heeded by the own client": {
    takesOut: ["options#the-default-client"],
    "dynamodb/default-client.ts": { 'retryMode: "standard", ': "" },
    test: "dynamodb/default-client",
  },
  "throttling ends a call": {
    takesOut: ["trap 14", "protocol#waiting 3"],
    "session/retry.ts": {
      "error instanceof LockStoreError && error.transient":
        "error instanceof LockStoreError && error.transient && !error.throttled",
    },
    test: "behaviour/taking/waiting",
  },
  "a conflict with a transaction is an answer": {
    takesOut: ["trap 20"],
    "dynamodb/failures.ts": {
      '"Timeout TransactionConflict TransactionInProgress"': '"Timeout TransactionInProgress"',
    },
    test: "behaviour/fencing/guards",
  },
  "the SDK's mark makes a final error a passing one": {
    takesOut: ["trap 50"],
    "dynamodb/failures.ts": { "$retryable !== undefined ||": "$retryable !== undefined || $metadata !== undefined ||" },
    test: "dynamodb/failures",
  },
  "what a failure was caused by does not count": {
    takesOut: ["trap 50"],
    "dynamodb/failures.ts": { "chain.some(mayPass)": "mayPass(failure)" },
    test: "dynamodb/failures",
  },
  "a wait that never had an answer goes on": {
    takesOut: ["protocol#waiting 3"],
    "taking/call.ts": {
      "Math.max(this.#startedAt, scheduler.silentSince) + FIRST_ANSWER_MS": "Number.POSITIVE_INFINITY",
    },
    test: "behaviour/errors/last-cause",
  },
  "the last timeout is told without its cause": {
    takesOut: ["trap 35", "protocol#requests-of-one-process: A timeout's error"],
    "session/retry.ts": {
      "const cause = failure instanceof NoAnswer || failure instanceof NotSent ? failure.cause : failure;":
        "const cause = undefined as unknown;",
    },
    test: "session/retry",
  },
  "an attempt that did not leave hides the failure before it": {
    takesOut: ["trap 35"],
    "session/retry.ts": { "if (tried.failure === undefined || !(error instanceof NotSent)) {": "{" },
    test: "session/retry",
  },
  "a call asks again at once, however often": {
    takesOut: ["trap 31", "protocol#requests-of-one-process: No request is repeated"],
    "taking/bid.ts": { "if (this.#times <= AT_ONCE)": "if (this.#times <= 50)" },
    test: "behaviour/network/request-loops",
  },
  "a try sleeps beyond its time before it asks again": {
    takesOut: ["protocol#requests-of-one-process: No request is repeated"],
    "taking/bid.ts": { "Math.max(0, Math.min(ms, this.until() - clock.atMost()))": "ms" },
    test: "taking/bid",
  },
  "a clock that never knows the time is asked for ever": {
    takesOut: ["trap 31", "protocol#time-first: If a clock of your own"],
    "taking/known-time.ts": { "clock.wall() !== undefined && reads < MOST_READS": "reads < 9" },
    test: "behaviour/network/request-loops",
  },
  "a request that had to wait for a slot leaves in the context of another": {
    takesOut: ["trap 52"],
    "session/requests.ts": { "context.runInAsyncScope(() => this.#send(kind, send))": "this.#send(kind, send)" },
    test: "behaviour/observability/async-context",
  },
  "renewals leave one after the other": {
    takesOut: ["trap 13", "protocol#requests-of-one-process: Renewals leave at once"],
    "session/requests.ts": { "renewal: 10, release: 2,": "renewal: 0.02, release: 2," },
    test: "behaviour/holding/renewal",
  },
  "other requests hold up renewals": {
    takesOut: ["trap 28", "protocol#requests-of-one-process: Renewals leave at once"],
    "session/requests.ts": { '(kind === "renewal" ? renewals : all)': "(renewals < 0 ? renewals : all)" },
    test: "session/scheduler",
  },
  "a process takes more while its renewals fill the width": {
    takesOut: ["protocol#requests-of-one-process: Everything else"],
    "session/requests.ts": { "take: 1, read: 1": "take: 10, read: 10" },
    test: "session/scheduler",
  },
  "releases wait for what is new": {
    takesOut: ["protocol#requests-of-one-process: Everything else"],
    "session/requests.ts": { "release: 2,": "release: 1," },
    test: "session/scheduler",
  },
  "throttling does not narrow the width": {
    takesOut: ["protocol#requests-of-one-process: The width is 48"],
    "session/requests.ts": { "Math.max(LEAST_WIDTH, this.#width / 2)": "this.#width" },
    test: "session/scheduler",
  },
  "what a claim says of the time is chosen before it has its slot": {
    takesOut: ["protocol#requests-of-one-process: Stamps"],
    "taking/row-take.ts": {
      "session.mayRelease(target.settings.releaseWithinMs);":
        "session.mayRelease(target.settings.releaseWithinMs); void this.write;",
    },
    test: "behaviour/taking/many-names",
  },
  "renewals are never sent together": {
    takesOut: ["protocol#keeping: What is due"],
    "dynamodb/renewal-batches.ts": { "if (!this.#isUsable ||": "if (this.#isUsable ||" },
    test: "dynamodb/renewal-batches",
  },
  "the first batch is as large as any": {
    takesOut: ["protocol#keeping: The batch size doubles"],
    "dynamodb/renewal-batches.ts": { "#most = 1;": "#most = MOST;" },
    test: "dynamodb/renewal-batches",
  },
  "moments are rounded up": {
    takesOut: ["protocol#keeping: Due times"],
    "session/agenda.ts": { "Math.floor((now + ms + nearlyMs) / stepMs)": "Math.ceil((now + ms + nearlyMs) / stepMs)" },
    test: "session/agenda",
  },
  "few leases are renewed on the grid as well": {
    takesOut: ["protocol#keeping: Renewals travel together"],
    "session/agenda.ts": { "TOGETHER = 8": "TOGETHER = 1" },
    test: "session/agenda",
  },
  "earliest does not follow a reply that is behind": {
    takesOut: ["trap 32", "protocol#wrong-dates: A reply that is behind", "protocol#wrong-dates"],
    "time/table-clock.ts": {
      "const { earliest, latest } = others.reduce((sum, { time }) => cover(sum, age(time, now)), age(first.time, now));":
        "const { latest } = others.reduce((sum, { time }) => cover(sum, age(time, now)), age(first.time, now)); const { earliest } = age(first.time, now);",
    },
    test: "time/table-clock",
  },
  "a renewal may make its lease shorter": {
    takesOut: ["protocol#wrong-dates: A holder loses nothing"],
    "taking/row-writes.ts": { "Math.max(lease.validUntil, leaseEnd(stamped))": "leaseEnd(stamped)" },
    test: "behaviour/network/wrong-date",
  },
  "check() lets a global table with eventual consistency pass": {
    takesOut: ["trap 18"],
    "dynamodb/admin/findings.ts": { "if (consistency !== undefined) {": 'if (consistency === "strong") {' },
    test: "operations/check",
  },
};
