import {
  acquisition,
  agenda,
  claim,
  clock,
  knownTime,
  lease,
  renewals,
  requests,
  retry,
  rows,
  rowTake,
  sections,
  sightings,
  tableClock,
  wait,
  wasApplied,
  watch,
} from "./files.js";
import type { Defects } from "./patch.js";

/** Defects of taking and holding. What each breaks is a sentence of docs/protocol.md. */
export const DEFECTS: Defects = {
  "a lease does not run while its host is suspended": [clock(/monotonic \+ suspended \+ missed/g, "monotonic")],
  "what falls due in a suspend waits for its timer": [agenda(/Math\.min\(leftMs, CHECK_EVERY_MS\)/g, "leftMs")],
  "nobody checks the deadline": [lease(/this\.#session\.clock\.atMost\(\) >= this\.deadline/g, "false")],
  "a watcher counts on the lease's stopwatch": [
    sightings(/#clock\.atLeast\(\)/g, "#clock.atMost()", 3),
    rows(/asOf: clock\.atLeast\(\)/g, "asOf: clock.atMost()"),
  ],
  "a watcher waits for its own ttl and not the row's": [
    watch(/sightings\.note\(at, next\)/g, "sightings.note(at, next && { ...next, ttlMs: target.settings.ttlMs })"),
    claim(/sightings\.note\(target\.at, row\)/g, "sightings.note(target.at, { ...row, ttlMs: target.settings.ttlMs })"),
  ],
  "the clock is a point": [
    tableClock(
      /return \{ earliest, latest \};/g,
      "const point = (earliest + latest) / 2; return { earliest: point, latest: point };",
    ),
  ],
  "a write is sent on wide bounds": [
    tableClock(/function isCurrent\(\) \{/g, "$& return known.bounds(read()) !== undefined || fallenBack;"),
  ],
  "the earliest time follows a single reply that contradicts it": [
    tableClock(/this\.#all = withOneMore\(heard, (\{.*\})\);/g, "this.#all = [$1];"),
  ],
  "a second reply confirms a time that contradicts another": [tableClock(/CONFIRM_MS = 60_000/g, "CONFIRM_MS = 0")],
  "an own renewal on the row is not recognised": [
    wasApplied(/case "renew":/g, '$& return "no";'),
    acquisition(/if \(!isStillHeldBy\(this\.#uuid, row\)\)/g, "if (true)"),
  ],
  "a claim in flight is forgotten when its caller gives up": [
    claim(/if \(isDoubtful \|\| copies\.sent > 1\)/g, "if (false)"),
  ],
  "a call counts its own earlier claim as another's": [
    sightings(/this\.#abandonedAttempt\(uuid\) !== undefined/g, "false"),
  ],
  "what a call has seen is forgotten with what its process remembers": [
    sightings(/return new Sightings\(this\.#clock, \{ hints: this \}\);/g, "return this;"),
  ],
  "one refused copy counts as proof that no other is in flight": [
    claim(/if \(copies\.unanswered > 0 \|\| outcome\.retried\)/g, "if (false)"),
  ],
  "a lock is delivered to a caller that has gone": [
    sections(/\(!wait\.endSignal\.aborted \|\| line\.isAwaited\(call\)\)/g, "true"),
    wait(/=> (settle\(SERVED, \(\) => resolve\(result\)\));/g, "=> ($1, true);"),
  ],
  "a holder does not learn what the row remembers": [rowTake(/memoryOf\((row|replaced)\)/g, '"nothing"', 2)],
  "data that the table refuses are sent until the lease ends": [
    acquisition(/data === undefined \? (\{ \.\.\.trying, worthRetrying: \(\) => true \}) : trying/g, "$1"),
    renewals(/\(this\.#session\.clock\.atMost\(\) \+ deadline\) \/ 2/g, "deadline"),
  ],
  "a pause may be longer than what is left of a lease": [retry(/SHARE_OF_REST = 1 \/ 3/g, "SHARE_OF_REST = Infinity")],
  "an attempt may wait until a lease ends": [
    requests(/ATTEMPT_SHARE_OF_REST = 2 \/ 3/g, "ATTEMPT_SHARE_OF_REST = Infinity"),
  ],
  "a call waits for a read of the time however long that takes": [
    knownTime(/overdueAt: clock\.atLeast\(\) \+ patienceMs/g, "overdueAt: Infinity"),
  ],
  "a passed lease keeps its token": [renewals(/ \|\| \(this\.#usage === "used" && row\.settings\.fencing\)/g, "")],
};
