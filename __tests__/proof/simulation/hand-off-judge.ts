import type { Transfer } from "../../../lib/protocol/writes.js";
import type { Message } from "../../support/message.js";
import type { Holding } from "./invariants.js";
import type { Asking } from "./locks.js";
import { transfersOf } from "./message.js";
import type { Change } from "./network.js";
import type { Step } from "./schedule.js";
import { Watcher } from "./watcher.js";

/** A clock that runs fast by what the protocol allows, and a bit. */
const SLOWEST = 1 - 1e-3;

/** How long before its end a token may count as over: bounds are not points, and a request takes its time. */
const DOUBT_MS = 10;

/** A lock that is handed off. */
export interface HandOff {
  readonly asking: Asking;
  /** Of a semaphore, the number of its permit. */
  readonly permits: readonly number[] | undefined;
  /** The uuid on its row before. */
  readonly from: string;
  readonly withinMs: number;
  /** Until when the lock stays taken however short its sections are, as far as it was asked for. */
  readonly heldUntil: number;
  /** The uuid that its token names, once the write has left. */
  uuid: string | undefined;
  sentAt: number;
  stage: "under way" | "handed off" | "resumed" | "forced" | "failed";
  /** Whether a section has begun on it. */
  isTaken: boolean;
  /** Which of the three writes before it have been applied once more since it was resumed: late copies. */
  readonly broughtBackBy: Set<"take" | "renew" | "transfer">;
}

/** Late copies of so many of them, in their order, make a token count once more: docs/guides/hand-off.md says so. */
const ALL_COPIES = 3;

/**
 * Watches the locks that are handed off: until somebody goes on with one, or its time is over, nobody else has it, and only one
 * section ever goes on with it.
 */
export class HandOffJudge extends Watcher {
  readonly #all = new Set<HandOff>();
  /** By the uuid that the token names. */
  readonly #byUuid = new Map<string, HandOff>();

  begins({ asking, lock, takenAt, uuid: from }: Holding, { withinMs, holdAtLeastMs }: Step): HandOff {
    const handOff: HandOff = {
      asking,
      permits: lock.permits,
      from,
      withinMs,
      heldUntil: takenAt + holdAtLeastMs * SLOWEST,
      uuid: undefined,
      sentAt: Number.POSITIVE_INFINITY,
      stage: "under way",
      isTaken: false,
      broughtBackBy: new Set(),
    };
    this.#all.add(handOff);
    return handOff;
  }

  /** Its call has come back. It may have been resumed before. */
  succeeded(handOff: HandOff): void {
    if (handOff.stage === "under way") handOff.stage = "handed off";
  }

  failed(handOff: HandOff): void {
    handOff.stage = "failed";
  }

  /** Whether a uuid is that of a token which somebody may still have. */
  isToken(uuid: string): boolean {
    return this.#byUuid.get(uuid)?.stage === "handed off";
  }

  sent(message: Message): void {
    for (const transfer of transfersOf(message))
      for (const handOff of this.#all) if (handOff.from === transfer.from) this.#leaves(handOff, transfer);
  }

  #leaves(handOff: HandOff, { uuid }: Transfer): void {
    this.#byUuid.set(uuid, handOff);
    if (handOff.uuid !== undefined) return;
    handOff.uuid = uuid;
    handOff.sentAt = this.now;
  }

  arrived(message: Message, change: Change): void {
    const { before, after } = change;
    for (const handOff of this.#all) if (handOff.stage === "resumed") noteCopy(handOff, change);
    if (before?.uuid === undefined || before.uuid === after?.uuid) return;
    const handOff = this.#byUuid.get(before.uuid);
    if (handOff === undefined) return;
    // Who takes the row over is judged when its section begins.
    if (transfersOf(message).length > 0) handOff.stage = "resumed";
    else if (message.kind === "write" && message.write.kind === "vacate") handOff.stage = "forced";
  }

  /** A section begins. @returns what is wrong with that. */
  took({ asking, uuid, lock }: Holding, own: HandOff | undefined): string | undefined {
    if (own?.isTaken && own.broughtBackBy.size < ALL_COPIES)
      return `${uuid} is the second that goes on with ${own.uuid}`;
    own?.broughtBackBy.clear();
    if (own !== undefined) own.isTaken = true;
    for (const handOff of this.#all) {
      if (handOff === own || handOff.asking.key !== asking.key || !overlap(handOff.permits, lock.permits)) continue;
      if (this.#lasts(handOff)) return `${uuid} has the lock while ${handOff.uuid} is handed off`;
    }
    return undefined;
  }

  /** Whether a lock is handed off, and nobody else may have it. */
  waiting({ key }: Asking): number {
    return [...this.#all].filter((handOff) => handOff.asking.key === key && this.#lasts(handOff)).length;
  }

  #lasts({ stage, sentAt, withinMs }: HandOff): boolean {
    return stage === "handed off" && this.now < sentAt + withinMs * SLOWEST;
  }

  /** A resumption has told of a loss. @returns what is wrong with that. */
  wrongWith({ stage, isTaken, uuid, sentAt, withinMs }: HandOff): string | undefined {
    if (isTaken || stage !== "handed off") return undefined;
    const left = sentAt + withinMs * SLOWEST - this.now;
    return left > DOUBT_MS ? `${uuid} is of no use ${left} ms before its time is over` : undefined;
  }
}

/** Whether two locks of one name have a row in common. */
export function overlap(one: readonly number[] = [0], other: readonly number[] = [0]): boolean {
  return one.some((permit) => other.includes(permit));
}

/** Notes a write that has put a lock back on the way to a hand-off which was resumed before. */
function noteCopy({ from, uuid, broughtBackBy }: HandOff, { before, after, hasChanged }: Change): void {
  if (!hasChanged || after?.uuid === undefined) return;
  if (after.uuid === uuid) broughtBackBy.add("transfer");
  else if (after.uuid === from) broughtBackBy.add(before?.uuid === from ? "renew" : "take");
}
