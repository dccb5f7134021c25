import type { LockData } from "../lock-info.js";
import type { Address } from "./addresses.js";
import type { FlightResult } from "./flight-result.js";
import type { HandOff } from "./hand-off.js";
import type { Knowledge } from "./may-take.js";
import type { Attributes, Memory } from "./row.js";

/**
 * Takes a row: one acquisition begins. Refused while another lease runs, and by the own uuid, which is how an earlier copy
 * is recognised.
 */
export interface Take {
  readonly kind: "take";
  readonly at: Address;
  readonly uuid: string;
  readonly expires: number;
  readonly ttlMs: number;
  readonly owner: string;
  readonly acquired: number;
  readonly data?: LockData | undefined;
  /** Until when others wait, as this process has seen before: the row carries their mark on. */
  readonly wanted?: number | undefined;
  readonly knowledge: Knowledge;
  /** What the row remembers, as far as is known: one that remembers more refuses. */
  readonly remembers: Memory;
  /** Draws a fencing token: one more than the row's last, or than this time of the table's, in ms, where it has none. */
  readonly fenceSeed?: number | undefined;
  /** The tick that this acquisition is for: refused where the row remembers this tick or a later one. */
  readonly tick?: number | undefined;
  /** Which run of its tick this is, where the tick is due until one succeeds. */
  readonly attempt?: number | undefined;
  /**
   * The tick is run again: granted only where the row shows it, due, with this number of attempts. Undefined for the first
   * form, which asks for no tick or an earlier one. A write that counted by itself would count again in a late copy.
   */
  readonly seenAttempt?: number | undefined;
  /** How many permits the semaphore has, on a row that is one of them: for hosts that know of another number. */
  readonly permits?: number | undefined;
  /**
   * The flight's result that the row has to have, or that it has none: refused once another flight has ended. So a late copy
   * brings no flight back.
   */
  readonly after?: { readonly id: string | undefined } | undefined;
}

/** Moves `expires` forward under the same uuid, and replaces the caller's data, if given. */
export interface Renew {
  readonly kind: "renew";
  readonly at: Address;
  readonly uuid: string;
  readonly expires: number;
  readonly data?: LockData | undefined;
  readonly remembers: Memory;
}

/**
 * Gives a row another uuid: writes that name the old one are refused from then on.
 *
 * `reissue`: for the next section of its process, with a later `expires`.
 * `transfer`: to another holder, on a lease of another length. It is the one write beside the take that may set an `expires`
 * that is not later, and so with a `ttlMs` of its own, or those who watch the row would be early.
 */
export interface Transfer {
  readonly kind: "reissue" | "transfer";
  readonly at: Address;
  readonly from: string;
  /**
   * `expires` is later: a late copy of the write that brought the uuid cannot bring it back to be handed on once more.
   * Undefined for a reissue, and for one who has nothing but the uuid.
   */
  readonly after?: number | undefined;
  readonly uuid: string;
  readonly expires: number;
  /** Undefined, as `owner`, where the holder stays the same. */
  readonly ttlMs?: number | undefined;
  readonly owner?: string | undefined;
  /** Whether it draws the next fencing token: refused where the row has none. */
  readonly fenced: boolean;
  readonly remembers: Memory;
  /** What it leaves for whoever resumes the row; undefined for all others, and the row keeps what is there. */
  readonly handOff?: HandOff | undefined;
}

/** A flight's result, which its release names on the lock's row: the row stays, and keeps it. */
export interface NamedResult extends FlightResult {
  /** Until when its caller would call it fresh, in epoch ms: neither row is purged before that, unless a later lease says less. */
  readonly freshUntil: number;
}

/** How a row is left when its uuid is removed. */
export type Left =
  /** Free at once. `free`: gone, unless it remembers something, or is to. `kept`: there in any case. */
  | { readonly kind: "free" | "kept"; readonly result?: NamedResult | undefined }
  /** Without a holder, and taken until `expires`; `ttlMs` is what is left until then, for those who watch. */
  | { readonly kind: "held"; readonly expires: number; readonly ttlMs: number }
  /** Without a holder, and taken until its lease would have ended. */
  | { readonly kind: "untilExpires" };

/** Removes a uuid from its row: a release, an unlock by force. */
export interface Vacate {
  readonly kind: "vacate";
  readonly at: Address;
  readonly uuid: string;
  readonly leaves: Left;
  readonly remembers: Memory;
  /** How many runs of the tick have begun, where this lease has brought none: its own is taken back. */
  readonly attempt?: number | undefined;
}

/** Records that the tick of an acquisition has succeeded: it is not due any more, and keeps the number of its attempts. */
export interface RecordSuccess {
  readonly kind: "record";
  readonly at: Address;
  readonly uuid: string;
  readonly tick: number;
  readonly attempt: number;
}

/** Deletes a row on which nobody relies any more, if it is still exactly as it was seen: a dead waiter, a dead reader. */
export interface Remove {
  readonly kind: "remove";
  readonly at: Address;
  /** Undefined for a row without a holder. */
  readonly seenUuid: string | undefined;
  readonly seenExpires: number;
}

/**
 * Puts the value of a flight, on a row of its own. It may replace any other, or arrive late: it counts for nobody unless the
 * lock's row names it.
 */
export interface PutResult {
  readonly kind: "put-result";
  readonly at: Address;
  readonly result: NamedResult;
  readonly owner: string;
  readonly data: LockData;
}

/** Marks a row as wanted by another host. A hint: it asks only that somebody holds the row. */
export interface Want {
  readonly kind: "want";
  readonly at: Address;
  readonly until: number;
}

/** Draws the number of a place: one more than the last, or than this time of the table's, in ms, where there is none. */
export interface Draw {
  readonly kind: "draw";
  readonly at: Address;
  readonly seed: number;
}

/** Changes nothing: ties other writes of a transaction to an acquisition, which has renewed and still holds the row. */
export interface Check {
  readonly kind: "check";
  readonly at: Address;
  readonly uuid: string;
  /** `expires` is later: a late copy of the write that brought the uuid cannot make the row pass again. */
  readonly after: number;
  /** The row has this token, where the lock is fenced. */
  readonly fence: bigint | undefined;
}

/** All writes of rows that the library sends. */
export type Write = Take | Renew | Transfer | Vacate | RecordSuccess | Remove | PutResult | Want | Draw | Check;

/** An attribute that becomes one more than it was, or than `seed` where it is missing. Without a seed, it is there. */
export interface Count {
  readonly attribute: string;
  readonly seed?: number | undefined;
}

/** What a write does to an item that meets its condition. */
export type Effect =
  | { readonly kind: "put"; readonly attributes: Attributes }
  | {
      readonly kind: "update";
      readonly set: Attributes;
      readonly remove: readonly string[];
      readonly count?: Count | undefined;
    }
  | { readonly kind: "delete" }
  | { readonly kind: "nothing" };
