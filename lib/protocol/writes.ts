import type { LockData } from "../lock-info.js";
import type { Address } from "./addresses.js";
import type { FlightResult } from "./flight-result.js";
import type { HandOff } from "./hand-off.js";
import type { Knowledge } from "./may-take.js";
import type { Attributes, Memory } from "./row.js";

/**
 * Draws the next fencing token: one more than the row's last, and not behind the table's time, so that a row that was restored from
 * a backup repeats none.
 */
export interface TokenDraw {
  /** The earliest time that the table's clock may show, in ms: no token that is drawn is less. */
  readonly least: number;
  /** The latest time that it may show: the first token is one more, where the row has none, or there is no row. */
  readonly seed: number;
  /**
   * No expression of DynamoDB's takes the greater of two numbers. So a draw has two forms, and each row refuses one of them:
   * - `true`, for a row whose token is behind `least`: the token becomes `least`. Also for no row, which gets the first token.
   * - `false`, for every other row: the token is counted up.
   */
  readonly isBehind: boolean;
}

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
  /** The mark that this process knows of: until when others wait. The take carries it on to the new row. */
  readonly wanted?: number | undefined;
  readonly knowledge: Knowledge;
  /** What the row remembers, as far as is known: a row that remembers more refuses the take. */
  readonly remembers: Memory;
  /** The fencing token that it draws, on a fenced mutex. */
  readonly token?: TokenDraw | undefined;
  /** The tick that this acquisition is for: refused where the row remembers this tick or a later one. */
  readonly tick?: number | undefined;
  /** With `untilSuccess`: the number of this run of the tick. */
  readonly attempt?: number | undefined;
  /**
   * For a further run of the tick: granted only if the row shows this tick, due, with this number of attempts. Undefined for the
   * first form, which asks for no tick or an earlier one. A write that incremented the number would count again in a late copy.
   */
  readonly seenAttempt?: number | undefined;
  /** How many permits the semaphore has, on a row that is one of them: for hosts that know of another number. */
  readonly permits?: number | undefined;
  /**
   * For a single flight: the result that the row must have, or that it must have none. The take is refused once another flight
   * has ended, so a late copy cannot begin the flight again.
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
 * `transfer`: to another holder, on a lease of another length. Apart from a take, only a transfer may set an `expires` that is
 * not later. So it also sets its own `ttlMs`: otherwise a process that watches the row would take it over too early.
 */
export interface Transfer {
  readonly kind: "reissue" | "transfer";
  readonly at: Address;
  readonly from: string;
  /**
   * The row's `expires` must be later than this. So the row cannot be handed on once more if a late copy of the write that
   * brought the uuid brings it back. Undefined for a reissue, and for a `resume`, which knows nothing but the uuid.
   */
  readonly after?: number | undefined;
  readonly uuid: string;
  readonly expires: number;
  /** Undefined, like `owner`, if the holder stays the same. */
  readonly ttlMs?: number | undefined;
  readonly owner?: string | undefined;
  /** The fencing token that it draws: refused where the row has none. */
  readonly token?: TokenDraw | undefined;
  readonly remembers: Memory;
  /**
   * What a hand-off leaves for the process that resumes the row. Undefined for every other transfer: the row keeps what is there.
   */
  readonly handOff?: HandOff | undefined;
}

/** A flight's result, which its release names on the lock's row: the row stays, and keeps it. */
export interface NamedResult extends FlightResult {
  /**
   * Until when the result is fresh for its caller, in epoch ms. Neither row is purged before, unless a later lease asks for less.
   */
  readonly freshUntil: number;
}

/** How a row is left when its uuid is removed. */
export type RowAfterRelease =
  /** Free at once. `free`: the row is deleted, unless it remembers something, or is about to. `kept`: the row stays in any case. */
  | { readonly kind: "free" | "kept"; readonly result?: NamedResult | undefined }
  /** Without a holder, and taken until `expires`; `ttlMs` is what is left until then, for processes that watch the row. */
  | { readonly kind: "held"; readonly expires: number; readonly ttlMs: number }
  /** Without a holder, and taken until its lease would have ended. */
  | { readonly kind: "untilExpires" };

/** Removes a uuid from its row: a release, an unlock by force. */
export interface Vacate {
  readonly kind: "vacate";
  readonly at: Address;
  readonly uuid: string;
  readonly leaves: RowAfterRelease;
  readonly remembers: Memory;
  /** Whether the run of this lease's tick has not begun: nobody is shown as having run it. */
  readonly isUnbegun?: boolean | undefined;
  /** With `untilSuccess`, the number of attempts to leave then: its own attempt is taken back. */
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
  /** The row's `expires` must be later than this: a late copy of the write that brought the uuid cannot make the row pass again. */
  readonly after: number;
  /** The token that the row must have, if the lock is fenced. */
  readonly fence: bigint | undefined;
}

/** All writes of rows that the library sends. */
export type Write = Take | Renew | Transfer | Vacate | RecordSuccess | Remove | PutResult | Want | Draw | Check;

/** An attribute that becomes one more than it was, or than `seed` if it is missing. A token that is behind becomes `least`. */
export interface Count extends Pick<TokenDraw, "seed">, Partial<Omit<TokenDraw, "seed">> {
  readonly attribute: string;
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
