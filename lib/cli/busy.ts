import type { LockInfo } from "../index.js";

/** Why the command was not run, in one line. */
export function whyNot(name: string, because: "held" | "done", row: LockInfo | undefined): string {
  const lock = `Lock ${JSON.stringify(name)}`;
  if (because === "done") {
    const last = row?.tick === undefined ? "" : `: the last one granted is ${row.tick}, to ${row.owner}`;
    return `${lock} was already granted for this tick${last}`;
  }
  if (row === undefined) return `${lock} is held`;
  const until = row.expires.toISOString();
  if (row.handedOff) return `${lock} was handed off by ${row.owner}, and may be resumed until ${until}`;
  if (row.uuid === undefined) return `${lock} has no holder and stays taken until ${until}`;
  return `${lock} is held by ${row.owner}, whose lease runs until ${until} unless it is renewed`;
}
