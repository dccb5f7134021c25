import { publish } from "../diagnostics.js";
import { LockLostError, LockStoreError } from "../errors.js";
import { Lease } from "../holding/lease.js";
import type { LeaseEvents } from "../holding/term.js";
import type { QueueRules, Resource } from "../kinds/kind.js";
import type { LockData } from "../lock-info.js";
import type { MutexSettings } from "../options/mutex.js";
import { type Address, placeAt } from "../protocol/addresses.js";
import { firstTimeoutMs } from "../session/requests.js";
import type { Session } from "../session/session.js";
import type { Bid } from "../taking/bid.js";
import { claim } from "../taking/claim.js";
import { learnTime } from "../taking/known-time.js";
import { guardOf, type RowLease } from "../taking/row-lease.js";
import { boundsOf } from "../time/clock.js";

/** Who shares a place: how many sections, and the number of the last caller. */
export interface Sharing {
  readonly sections: number;
  /** How many permits of a semaphore they need in all; as many as there are sections for any other lock. */
  readonly permits: number;
  readonly last: number;
}

/** How many drawn tickets may have a row already. If more have, somebody has set the counter back. */
const MOST_TAKEN = 5;

const PLACE_EVENTS: LeaseEvents = {
  hasSection: false,
  renewed: () => undefined,
  renewalFailed: ({ at: { name } }, cause) => publish("dynamutex:wait-failed", { name, cause }),
};

/**
 * A place of this process in the queue: a lease on a row. It serves all callers that asked before the draw of its ticket left
 * and have not entered yet. This process counts it as lost before any other process may skip it.
 */
export class Place {
  readonly ticket: bigint;
  readonly uuid: string;
  /** The number of the last caller that shares it. */
  readonly last: number;
  /** Called when the place is lost. */
  onLost: () => void = () => undefined;
  readonly #session: Session;
  readonly #lease: Lease;

  constructor(session: Session, row: RowLease, ticket: bigint, last: number) {
    this.ticket = ticket;
    this.uuid = row.uuid;
    this.last = last;
    this.#session = session;
    this.#lease = new Lease(session, row, PLACE_EVENTS);
    this.#lease.keep();
    this.#lease.begin({ abort: (reason) => this.#tell(reason) });
  }

  /** Until when the place is valid without another renewal, on `atMost`. */
  readonly until = (): number => (this.lost === undefined ? this.#lease.deadline : Number.NEGATIVE_INFINITY);

  get lost(): LockLostError | undefined {
    return this.#lease.lost;
  }

  /** Whether the lease of this place ended before its first renewal. */
  get wasTooShort(): boolean {
    return this.lost?.reason === "expired" && guardOf(this.#lease.row) === undefined;
  }

  #tell(why: unknown): void {
    if (!(why instanceof LockLostError)) return;
    const reason = why.reason === "expired" ? why.reason : "deleted";
    publish("dynamutex:ticket-lost", { name: this.#lease.row.at.name, ticket: this.ticket, uuid: this.uuid, reason });
    this.onLost();
  }

  /** A look has shown that the row is gone. */
  lose(): void {
    this.#lease.lose("deleted");
  }

  /** Gives the place up, in the background: a row that cannot be removed ends by itself. */
  giveUp(): void {
    this.#session.inOwnContext(() => this.#session.detach(this.#lease.exit.giveBack()));
  }
}

/**
 * Draws a ticket and takes the place that it numbers.
 *
 * @param sharing is called as the first copy of the draw leaves: how many sections of this process share the place, which its
 * row says for people to see, and the number of the last of them.
 * @throws the store's error; what ended the call. Then no row is left: what a request in flight may still write is
 * removed in the background.
 */
export async function takePlace(
  session: Session,
  resource: Resource,
  bid: Bid,
  sharing: () => Sharing,
): Promise<Place> {
  const { name, kind } = resource;
  const { keys, side } = kind.queue;
  const settings = placeSettings(resource.settings);
  let shared: Sharing | undefined;
  const onSent = (): void => {
    shared ??= sharing();
  };
  for (let taken = 0; taken < MOST_TAKEN; taken += 1) {
    bid.withdrawn.throwIfAborted();
    const ticket = await drawTicket(session, resource, bid, onSent);
    bid.withdrawn.throwIfAborted();
    const { last, ...needs } = shared ?? sharing();
    const data = sharingIn(needs, side);
    const result = await claim(session, { at: placeAt(name, ticket, keys), settings }, bid, { data });
    if (result.kind === "granted") return new Place(session, result.granted, ticket, last);
  }
  throw new LockStoreError(
    `Lock ${JSON.stringify(name)}: the ticket counter of its queue is behind the tickets that are in use, so its item ` +
      `${JSON.stringify(keys.counter)} was changed or restored: delete that item, and it starts again after them`,
  );
}

/**
 * What a place says of those who share it. Every version of this library takes `sections` for the number of permits that they need in
 * all, so it is that number: a version that knows of no `callers` counts no place as less than it is.
 */
function sharingIn({ sections, permits }: Omit<Sharing, "last">, side: QueueRules["side"]): LockData {
  if (permits > sections) return { sections: permits, callers: sections };
  return side === undefined ? { sections } : { sections, side };
}

/**
 * Draws the next ticket. The counter's seed is the table's time in ms, which grows faster than tickets are drawn: a counter
 * that was purged never goes back.
 */
async function drawTicket(session: Session, resource: Resource, bid: Bid, onSent: () => void): Promise<bigint> {
  const { clock, store } = session;
  const { name, kind, settings } = resource;
  const counter: Address = { name, sort: kind.queue.keys.counter };
  const persistence = { kind: "take", firstTimeoutMs: firstTimeoutMs(settings.ttlMs), until: bid.until } as const;
  for (;;) {
    await learnTime(session, resource.at, bid);
    const outcome = await bid.persistAtKnownTime(persistence, (signal) => {
      onSent();
      return store.write({ kind: "draw", at: counter, seed: Math.ceil(boundsOf(clock).latest) }, signal);
    });
    if (outcome?.kind === "applied" && outcome.drawn !== undefined) return outcome.drawn;
    await bid.again();
  }
}

/**
 * A place is renewed for as long as its call waits, whatever the lock's own renewal options say, and well before its lease ends.
 */
function placeSettings(settings: MutexSettings): MutexSettings {
  const { ttlMs, safetyMarginMs } = settings;
  const renewEveryMs = Math.floor(Math.min(ttlMs / 2, ((ttlMs - safetyMarginMs) * 2) / 3));
  return { ...settings, renewEveryMs, autoRenew: true, maxHoldMs: Number.POSITIVE_INFINITY, fencing: false };
}
