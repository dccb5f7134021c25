import type { Attributes } from "../../lib/protocol/row.js";
import type { Write } from "../../lib/protocol/writes.js";
import type { Violation } from "./explore.js";
import type { Rows } from "./rows.js";
import { claimantOf, nameOf, type State } from "./state.js";
import type { Event } from "./step.js";
import { TICK_MS, tickOf } from "./time.js";

/** A violation, step by step: the time in ticks, what happens, and the row where it changes. */
export function traceOf({ invariant, from, steps }: Violation): string {
  const lines = [hostsOf(from)];
  let before = from;
  for (const [index, { event, next }] of steps.entries()) {
    const row = next.rows === before.rows ? "" : `   [${rowsText(next.rows)}]`;
    lines.push(`${String(index + 1).padStart(3)}. at ${next.time}: ${eventText(event, before)}${row}`);
    before = next;
  }
  const holders = before.claimants.flatMap(({ lease }) => (lease?.section ? [lease.uuid] : []));
  return `${lines.join("\n")}\n     broken: ${invariant}${invariant === "one holder" ? `: ${holders.join(" and ")}` : ""}`;
}

function hostsOf({ claimants }: State): string {
  const texts = claimants.map(({ host }, index) => {
    const rate = host.rate === 1 ? "exact" : host.rate > 1 ? "500 ppm fast" : "500 ppm slow";
    const side = host.side === "mutex" ? "" : `a ${host.side}, `;
    const rules = host.takeover === "unchanged" ? ", trusts no clock" : "";
    return `${nameOf(index)}: ${side}leases of ${host.ttlMs / TICK_MS} ticks, stopwatches ${rate}${rules}`;
  });
  return `     ${texts.join("; ")}`;
}

function eventText(event: Event, before: State): string {
  switch (event.kind) {
    case "time passes": {
      if (event.suspended === undefined) return "a tick has passed";
      return `a tick has passed, for which ${nameOf(event.suspended)} was suspended`;
    }
    case "sends":
      return `${nameOf(event.who)} sends ${writeText(event.message.write)}`;
    case "arrives": {
      const { write, kind } = { write: event.message.write, kind: event.late ? "a late copy of " : "" };
      const outcome = event.applied ? "is applied" : "is refused";
      return `${kind}${nameOf(event.message.from)}'s ${writeText(write)} ${outcome}${event.replyLost ? ", its reply is lost" : ""}`;
    }
    case "hears": {
      const { answer } = claimantOf(before, event.who).request ?? {};
      const heard = answer?.kind === "refused" ? `refused by ${rowText(answer.by)}` : "applied";
      return `${nameOf(event.who)} hears about its ${event.message.write.kind}, ${heard}: ${event.meaning}`;
    }
    case "is shown the flags":
      return `${nameOf(event.who)} is shown ${claimantOf(before, event.who).host.side === "reader" ? "the writer's row" : "the readers' rows"}`;
    case "sees the flags":
      return `${nameOf(event.who)} sees ${rowsText(claimantOf(before, event.who).flags?.rows ?? {})}: ${event.meaning}`;
    case "goes on":
      return `${nameOf(event.who)}'s next section begins on the same lease`;
    case "gives up":
    case "sends again":
    case "crashes":
    case "sets its clock forward":
    case "looks":
    case "is shown the row":
    case "sees the row":
      return `${nameOf(event.who)} ${event.kind}`;
    default:
      return event satisfies never;
  }
}

function writeText(write: Write): string {
  switch (write.kind) {
    case "take": {
      const { earliest, unchanged } = write.knowledge;
      const seen = unchanged && ` or exactly ${unchanged.uuid} until ${ticks(unchanged.expires)}`;
      return `take of ${write.uuid} until ${ticks(write.expires)}, if over before ${ticks(earliest)}${seen ?? ""}`;
    }
    case "renew":
      return `renewal of ${write.uuid} until ${ticks(write.expires)}`;
    case "reissue":
      return `reissue of ${write.from} as ${write.uuid} until ${ticks(write.expires)}`;
    case "vacate":
      return `release of ${write.uuid}`;
    case "check":
      return `guard of ${write.uuid}, if later than ${ticks(write.after)}`;
    case "remove":
      return `removal of ${write.seenUuid} until ${ticks(write.seenExpires)}`;
    case "transfer": {
      const { from, after, uuid, expires } = write;
      if (after === undefined) return `resumption of ${from} as ${uuid} until ${ticks(expires)}`;
      return `hand-off of ${from}, if later than ${ticks(after)}, as ${uuid} until ${ticks(expires)}`;
    }
    case "put-result":
    case "record":
    case "want":
    case "draw":
      return write.kind;
    default:
      return write satisfies never;
  }
}

function rowsText(rows: Rows): string {
  return Object.values(rows).map(rowText).join("; ") || "no row";
}

function rowText(row: Attributes | undefined): string {
  if (row === undefined) return "no row";
  if (row.uuid === undefined) return "a row that is free";
  const token = row.fence === undefined ? "" : `, token ${row.fence}`;
  return `${row.uuid} until ${ticks(Number(row.expires))}${token}`;
}

/** A moment on the table's clock; the least of all stands for no time at all. */
function ticks(ms: number): string {
  return ms <= 1 ? "ever" : String(tickOf(ms));
}
