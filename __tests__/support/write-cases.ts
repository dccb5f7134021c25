import type { Address } from "../../lib/protocol/addresses.js";
import type { Memory, Row } from "../../lib/protocol/row.js";
import type { Remove, Renew, RowAfterRelease, TokenDraw, Transfer, Vacate, Want } from "../../lib/protocol/writes.js";
import type { WriteOutcome } from "../../lib/store.js";

export const APPLIED: WriteOutcome = { kind: "applied", replaced: undefined, drawn: undefined };
export const GONE: WriteOutcome = { kind: "refused", row: undefined, retried: false };

export function refusedBy(row: Row | undefined): WriteOutcome {
  return { kind: "refused", row, retried: false };
}

export const MEMORIES: readonly Memory[] = ["nothing", "fence", "tick"];
export const FREE: RowAfterRelease = { kind: "free" };

/** What a row has that remembers so much. */
export const REMEMBERS: Readonly<Record<Memory, Partial<Row>>> = {
  nothing: {},
  fence: { fence: 7n },
  tick: { tick: 8 },
};

/** What a row may remember, all of it. */
export const REMEMBERED: Partial<Row> = { fence: 41n, tick: 42 };

/** A draw that counts up from what the row has, whatever the time is. */
export const COUNTS: TokenDraw = { least: 0, seed: 7_000, isBehind: false };

export function renewalOf(at: Address, uuid: string, expires: number, differences: Partial<Renew> = {}): Renew {
  return { kind: "renew", at, uuid, expires, remembers: "nothing", ...differences };
}

export function reissueOf(at: Address, differences: Partial<Transfer> = {}): Transfer {
  const fresh = { from: "mine", uuid: "fresh", expires: 100 };
  return { kind: "reissue", at, ...fresh, remembers: "nothing", ...differences };
}

export function transferOf(at: Address, differences: Partial<Transfer> = {}): Transfer {
  const fresh = { from: "mine", uuid: "fresh", expires: 100, ttlMs: 7_000, owner: "host#3" };
  return { kind: "transfer", at, ...fresh, remembers: "nothing", ...differences };
}

export function vacateOf(
  at: Address,
  uuid: string,
  leaves: RowAfterRelease,
  differences: Partial<Vacate> = {},
): Vacate {
  return { kind: "vacate", at, uuid, leaves, remembers: "nothing", ...differences };
}

export function removalOf(at: Address, seenUuid: string | undefined, seenExpires: number): Remove {
  return { kind: "remove", at, seenUuid, seenExpires };
}

export function wantOf(at: Address, until: number): Want {
  return { kind: "want", at, until };
}
