import { channel } from "node:diagnostics_channel";
import type { Diagnostics } from "../../lib/diagnostics.js";
import type { Coverage } from "./coverage.js";
import type { Arrival } from "./network.js";

/** Counts what the library tells on its channels, and passes it on; the answer ends that. */
export function countDiagnostics(coverage: Coverage, hear: (name: string, message: object) => void): () => void {
  const ends: (() => void)[] = [];
  const on = <Name extends keyof Diagnostics>(name: Name, count: (message: Diagnostics[Name]) => void): void => {
    const listener = (message: unknown): void => {
      count(message as Diagnostics[Name]);
      hear(name, message as Diagnostics[Name]);
    };
    channel(name).subscribe(listener);
    ends.push(() => void channel(name).unsubscribe(listener));
  };
  on("dynamutex:lost", ({ reason }) => coverage.count(`losses: ${reason}`));
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
export function countArrival(coverage: Coverage, { operation, outcome, rows, answered, duplicate }: Arrival): void {
  const changed = rows.some(({ before, after }) => before !== after);
  if (changed && duplicate) coverage.count(`late duplicates applied: ${operation.kind}`);
  if (changed && !answered && !duplicate) coverage.count(`ambiguous writes: ${operation.kind}`);
  if (operation.kind === "read") return;
  if (outcome.kind === "ticket") {
    if (operation.kind !== "ticket") return;
    coverage.count(`ticket ${operation.ticket.kind}: ${outcome.result.kind}`);
    const isApplied = outcome.result.kind === "applied" || outcome.result.kind === "drawn";
    if (isApplied && duplicate) coverage.count(`late duplicates applied: ticket ${operation.ticket.kind}`);
    if (isApplied && !answered && !duplicate) coverage.count(`ambiguous writes: ticket ${operation.ticket.kind}`);
    return;
  }
  if (operation.kind !== "take") {
    coverage.count(`${operation.kind}: ${outcome.kind}`);
    return;
  }
  const before = rows[0]?.before;
  if (outcome.kind === "held") {
    const own = outcome.row.uuid === operation.claim.uuid;
    coverage.count(own ? (answered ? "own writes recognised" : "own writes refused unheard") : "take: held");
  } else if (before === undefined) {
    coverage.count("take: granted, no row");
  } else if (before.uuid === undefined) {
    coverage.count(before.expires === 0 ? "take: granted, a free row" : "take: granted, a row whose hold was over");
  } else {
    const rule = before.expires < operation.terms.earliest ? "expired" : "unchanged";
    coverage.count(`takeovers: ${rule}`);
  }
}
