import type { Message } from "../../support/message.js";
import { takesOf } from "./message.js";
import type { Departure, Sender } from "./network.js";
import { Watcher } from "./watcher.js";

/** How wide the bounds of a clock may be that has not heard of the table for a while. */
const MOST_WIDTH_MS = 2_000;

/** How old its last reply may be where they are wider: a slow table's bounds are as wide as its answers are slow. */
const MOST_AGE_MS = 60_000;

/** A Date header has whole seconds, truncated. */
const DATE_STEP_MS = 1_000;

/** By how much the bounds of a clock may grow beyond the time that goes by, in each ms. */
const DRIFT = 1e-3;

/** For rounding, and for the jitter of a host's clocks. */
const SLACK_MS = 10;

/** The last reply that has told a process the time. */
interface Reply {
  readonly request: Departure;
  readonly heardAt: number;
}

/**
 * Watches what is written that depends on the time of the table: a stamp, a tick, a fencing token, a ticket. Clocks that
 * do not listen to replies are exempt.
 */
export class TimeJudge extends Watcher {
  readonly #replies = new WeakMap<Sender["process"], Reply>();
  /** The same, of those that were right. */
  readonly #rightReplies = new WeakMap<Sender["process"], Reply>();
  /** How far ahead of the true time a wrong reply may have put what a process holds possible, and when. */
  readonly #misled = new WeakMap<Sender["process"], { readonly mostMs: number; readonly heardAt: number }>();
  /** Takes whose first copy has left: a further one says what the first one said. */
  readonly #sent = new Set<string>();

  /** A reply has told a process the time. */
  learned({ process }: Sender, request: Departure, aheadMs: number): void {
    const reply = { request, heardAt: this.now };
    this.#replies.set(process, reply);
    if (aheadMs === 0) {
      this.#rightReplies.set(process, reply);
    } else {
      const mostMs = Math.max(0, aheadMs) + DATE_STEP_MS + reply.heardAt - request.at;
      const { heardAt } = reply;
      this.#misled.set(process, { mostMs: Math.max(mostMs, this.#misledMs(process) ?? 0), heardAt });
    }
  }

  /** What a process sends. @returns why it does not know the time well enough for that. */
  early({ process, clock }: Sender, message: Message): string | undefined {
    // Reading a clock that does not listen would hide a step of it from the machine.
    if (clock.listen === undefined) return undefined;
    const reply = this.#replies.get(process);
    const ageMs = reply === undefined ? Number.POSITIVE_INFINITY : this.now - reply.heardAt;
    const widthMs = widthOf(clock);
    const isKnown = widthMs <= MOST_WIDTH_MS || ageMs <= MOST_AGE_MS * (1 + DRIFT) + SLACK_MS;
    if (message.kind === "read" && message.consistent && !isKnown) {
      this.count(reply === undefined ? "first reads for the time" : "reads for the time after a silence");
    }
    if (isKnown || !this.#needsTime(message)) return undefined;
    return `${what(message)} is sent with bounds ${widthMs} ms apart and a last reply ${ageMs} ms old`;
  }

  /** @returns which stamp of a take lies too far ahead of the true time. */
  late({ process, clock }: Sender, message: Message): string | undefined {
    const takes = takesOf(message).filter(({ uuid }) => !this.#sent.has(uuid));
    if (takes.length === 0) return undefined;
    for (const { uuid } of takes) this.#sent.add(uuid);
    const misledMs = this.#misledMs(process);
    // What was held possible by a wrong reply moves on with a wall clock that is set forward.
    const mostMs =
      this.#mostAhead(process, clock) + (misledMs === undefined ? 0 : misledMs + process.forwardMs * (1 + DRIFT));
    const now = this.tableTime;
    const late = takes.find(({ expires, ttlMs }) => expires - ttlMs - now > mostMs);
    return late && `${late.uuid} is stamped ${late.expires - late.ttlMs - now} ms late, which may be ${mostMs}`;
  }

  #misledMs(process: Sender["process"]): number | undefined {
    const misled = this.#misled.get(process);
    return misled && misled.mostMs + DRIFT * (this.now - misled.heardAt);
  }

  /** Renewals and releases never wait for the time, and neither do further copies of a take. */
  #needsTime(message: Message): boolean {
    if (takesOf(message).some(({ uuid }) => !this.#sent.has(uuid))) return true;
    return message.kind === "write" && message.write.kind === "draw";
  }

  /**
   * How far the latest time that a process holds possible may be ahead of the true one: after a reply by its step and by
   * the time that it took, and by what the clock was set forward since.
   */
  #mostAhead(process: Sender["process"], clock: Sender["clock"]): number {
    const reply = this.#rightReplies.get(process);
    if (reply === undefined || clock.listen === undefined || widthOf(clock) <= MOST_WIDTH_MS) {
      return MOST_WIDTH_MS + SLACK_MS;
    }
    const tookMs = reply.heardAt - reply.request.at;
    const ageMs = this.now - reply.heardAt;
    const steppedMs = process.forwardMs - reply.request.forwardMs;
    // Whoever sees its clock go on by more has not heard of the table for so long, as far as it knows: unless it was set back.
    const unnoticedMs = Math.min(steppedMs, MOST_AGE_MS);
    const mostMs = Math.max(MOST_WIDTH_MS, DATE_STEP_MS + tookMs + unnoticedMs);
    return mostMs + DRIFT * (tookMs + ageMs + unnoticedMs) + SLACK_MS;
  }
}

function what(message: Message): string {
  const [take] = takesOf(message);
  return take === undefined ? "a draw" : `a take of ${take.uuid}`;
}

function widthOf(clock: Sender["clock"]): number {
  const bounds = clock.wall();
  return bounds === undefined ? Number.POSITIVE_INFINITY : bounds.latest - bounds.earliest;
}
