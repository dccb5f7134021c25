import { channel } from "node:diagnostics_channel";
import type { Diagnostics } from "../../../lib/diagnostics.js";
import { kindOf, ticketOf } from "../../../lib/protocol/addresses.js";
import type { Take, Write } from "../../../lib/protocol/writes.js";
import type { Message } from "../../support/message.js";
import type { Coverage } from "./coverage.js";
import { isForced } from "./message.js";
import type { Arrival, Change } from "./network.js";
import { isSimulated } from "./schedule.js";

/** Counts what the library tells on its channels, and passes it on; the answer ends that. */
export function countDiagnostics(coverage: Coverage, hear: (name: string, message: object) => void): () => void {
  const ends: (() => void)[] = [];
  const on = <Name extends keyof Diagnostics>(name: Name, count: (message: Diagnostics[Name]) => void): void => {
    const listener = (message: unknown): void => {
      if (!isSimulated(message as object)) return;
      count(message as Diagnostics[Name]);
      hear(name, message as Diagnostics[Name]);
    };
    channel(name).subscribe(listener);
    ends.push(() => void channel(name).unsubscribe(listener));
  };
  on("dynamutex:asked", ({ locks }) => coverage.count(locks > 1 ? "calls for a set" : "calls for a lock"));
  on("dynamutex:missed", ({ reason }) => coverage.count(`calls that missed: ${reason}`));
  on("dynamutex:failed", ({ reason }) => coverage.count(`calls that failed: ${reason}`));
  on("dynamutex:acquired", ({ passedOn }) => coverage.count(`sections on a lease ${passedOn ? "passed on" : "taken"}`));
  on("dynamutex:released", () => coverage.count("sections that told of their end"));
  on("dynamutex:lost", ({ reason }) => coverage.count(`losses: ${reason}`));
  on("dynamutex:wanted", () => coverage.count("sections that told that others wait"));
  on("dynamutex:renewal-failed", () => coverage.count("renewal attempts that failed"));
  on("dynamutex:wait-failed", () => coverage.count("requests of waits that failed"));
  on("dynamutex:clock", ({ event }) => coverage.count(`clock: ${event}`));
  on("dynamutex:ticket-lost", ({ reason }) => coverage.count(`tickets lost: ${reason}`));
  on("dynamutex:release-failed", () => coverage.count("releases given up"));
  return () => {
    for (const end of ends) end();
  };
}

/** Counts what arrives at the table. */
export function countArrival(coverage: Coverage, { message, answer, rows, answered, duplicate }: Arrival): void {
  const what = labelOf(message);
  const changed = rows.some(({ hasChanged }) => hasChanged);
  if (changed && duplicate) coverage.count(`late duplicates applied: ${what}`);
  if (changed && !answered && !duplicate) coverage.count(`ambiguous writes: ${what}`);
  if (answer === undefined || !("outcome" in answer)) return;
  if (answer.kind === "write" && answer.write.kind === "take" && kindOf(answer.write.at.sort) === "lock") {
    countTake(coverage, answer.write, rows[0], answered);
  } else {
    coverage.count(`${what}: ${answer.outcome.kind}`);
  }
}

function countTake(coverage: Coverage, take: Take, change: Change | undefined, answered: boolean): void {
  const before = change?.before;
  if (!change?.hasChanged) {
    const own = before?.uuid === take.uuid;
    coverage.count(own ? (answered ? "own writes recognised" : "own writes refused unheard") : "take: held");
  } else if (before === undefined) {
    coverage.count("take: granted, no row");
  } else if (before.uuid === undefined) {
    coverage.count(before.expires === 0 ? "take: granted, a free row" : "take: granted, a row whose hold was over");
  } else {
    const rule = before.owner === take.owner ? "of the same process" : "unchanged";
    coverage.count(`takeovers: ${before.expires < take.knowledge.earliest ? "expired" : rule}`);
  }
}

/** What a message does, in the words of whoever sends it. */
function labelOf(message: Message): string {
  if (message.kind !== "write") return message.kind;
  const { write } = message;
  const kind = kindOf(write.at.sort);
  if (ticketOf(write.at.sort) !== undefined) return `place ${labelOfPlace(write)}`;
  return kind === undefined || kind === "lock" ? labelOfLock(write) : `${kind} ${labelOfLock(write)}`;
}

function labelOfLock(write: Write): string {
  if (write.kind !== "vacate") return write.kind;
  return isForced(write) ? "force" : "release";
}

function labelOfPlace(write: Write): string {
  if (write.kind === "remove") return "sweep";
  return write.kind === "vacate" ? "leave" : write.kind;
}
