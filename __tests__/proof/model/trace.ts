import type { Attributes } from "../../../lib/protocol/row.js";
import type { Sent } from "./messages.js";
import type { Rows } from "./rows.js";
import { claimantOf, nameOf, type State } from "./state.js";
import type { Step } from "./step.js";
import { TICK_MS, tickOf } from "./time.js";

/** A run, step by step: the time in ticks, what happens to whom, what flags it is shown, and the rows where they change. */
export function traceOf(from: State, steps: readonly Step[]): string {
  const lines = [hostsOf(from)];
  let before = from;
  for (const [index, { what, who, message, next }] of steps.entries()) {
    const whose = who === undefined ? "" : `${nameOf(who)}: `;
    const write = message === undefined ? "" : ` (${writeText(message.write)})`;
    const shown = what === "is shown the flags" ? ` (${rowsText(claimantOf(next, who ?? 0).flags?.rows ?? {})})` : "";
    const rows = next.rows === before.rows ? "" : `   [${rowsText(next.rows)}]`;
    lines.push(`${String(index + 1).padStart(3)}. at ${next.time}: ${whose}${what}${write}${shown}${rows}`);
    before = next;
  }
  return lines.join("\n");
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

function writeText(write: Sent): string {
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
