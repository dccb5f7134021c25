import {
  LOCK_SORT,
  MUTEX_QUEUE,
  permitOf,
  placeAt,
  placeSort,
  placesOf,
  type QueueKeys,
  SEMAPHORE_QUEUE,
  SHARED_MUTEX_QUEUE,
  type SortRange,
  ticketOf,
} from "../../../lib/protocol/addresses.js";
import type { Take } from "../../../lib/protocol/writes.js";
import type { Page, RangeQuery } from "../../../lib/store.js";
import type { Answer, Message } from "../../support/message.js";
import type { Holding } from "./invariants.js";
import { lockKindOf } from "./locks.js";
import type { Process } from "./machine.js";
import { takesOf } from "./message.js";
import type { Arrival, Sender } from "./network.js";
import { FAIR_NAME } from "./schedule.js";
import { entryOf, type Scene, Watcher } from "./watcher.js";

/** The share of its lease for which a watcher cannot have seen a row unchanged, whatever its stopwatch's rate. */
const UNWATCHED = 0.99;

/** For how long a claim may be sent on a look, from when the look was sent; stopwatches may run slow. */
const LOOK_LASTS_MS = 3_000 * 1.001 + 10;

/** For how long looks are remembered: longer than any claim is under way. */
const REMEMBERED_MS = 60_000;

/** The queue of one kind of lock. */
export interface QueueKind {
  readonly keys: QueueKeys;
  /** The side that a claim of such a row is for; undefined for a row that nobody enters by. */
  sideOf(sort: string): Side | undefined;
  /** How many of those who wait before a caller of this side keep it out. */
  readonly room: number;
  /** Whether one who waits keeps out those of this side behind it, as far as there is no room for both. */
  blocks(waiting: Side, behind: Side): boolean;
}

/** All callers of a mutex and of a semaphore are of one side. */
export type Side = "any" | "exclusive" | "shared";

const sideNamed = (kind: unknown): Side => (kind === "exclusive" || kind === "shared" ? kind : "any");

const isAny = (is: boolean): Side | undefined => (is ? "any" : undefined);

export const MUTEX_PLACES: QueueKind = {
  keys: MUTEX_QUEUE,
  sideOf: (sort) => isAny(sort === LOCK_SORT),
  room: 1,
  blocks: () => true,
};

/** Whoever has as many before it as there are permits cannot be in, whoever has them. */
export const permitPlaces = (permits: number): QueueKind => ({
  keys: SEMAPHORE_QUEUE,
  sideOf: (sort) => isAny(permitOf(sort) !== undefined),
  room: permits,
  blocks: () => true,
});

/** Those of the shared side go in together. */
export const SIDES_PLACES: QueueKind = {
  keys: SHARED_MUTEX_QUEUE,
  sideOf: (sort) => {
    const side = sideNamed(lockKindOf({ sort }));
    return side === "any" ? undefined : side;
  },
  room: 1,
  blocks: (waiting, behind) => waiting === "exclusive" || behind === "exclusive",
};

/** A place that was written. */
interface Place {
  readonly uuid: string;
  readonly ticket: bigint;
  readonly side: Side;
  /** How many permits its callers need at least: those of a shared place may have entered or gone, but for one. */
  readonly weight: number;
  readonly owner: string;
  /** When its row came to the table. */
  readonly since: number;
  /** Until when everybody has had to respect it without a break, in virtual ms. */
  until: number;
}

/** A page of a consistent query, which shows all places of a range of sort keys. */
interface Look {
  readonly sentAt: number;
  readonly first: string;
  readonly last: string;
  /** It shows what is behind this, where it is not the first page. */
  readonly after: string | undefined;
  readonly shown: ReadonlySet<string>;
}

type Range = Pick<Look, "first" | "last" | "after">;

/** What a process knows. */
interface Told {
  readonly looks: Look[];
  /** Its own places of which it knows that they were written, by uuid; those that it gives up are left out. */
  readonly places: Map<string, bigint>;
  readonly left: Set<string>;
}

/** A claim of the lock's row. */
interface Claim {
  readonly side: Side;
  readonly weight: number;
  /** The lowest ticket of its process's places; undefined where it had none when it was sent. */
  ticket: bigint | undefined;
  /** From when on looks count for it. */
  readonly looksFrom: number;
}

/** A section that begins on a lock of the queue. One of a set, which overtakes, and one that resumes have not asked. */
export type Served = Pick<Holding, "asking" | "uuid" | "owner" | "process" | "askedAt">;

/** What is wrong with a claim. */
export interface Trespass {
  readonly invariant: "nobody enters without a place" | "no claim on an old look";
  readonly detail: string;
}

/** Watches the queue of one name that only fair mutexes use. Tells what is wrong, or nothing. */
export class QueueJudge extends Watcher {
  readonly #kind: QueueKind;
  /** Its places. */
  readonly #range: SortRange;
  /** By uuid. */
  readonly #places = new Map<string, Place>();
  readonly #claims = new Map<string, Claim>();
  readonly #served = new Set<string>();
  readonly #told = new WeakMap<Process, Told>();
  readonly #sentAt = new WeakMap<Message, number>();

  constructor(scene: Scene, kind: QueueKind = MUTEX_PLACES) {
    super(scene);
    this.#kind = kind;
    this.#range = placesOf(kind.keys);
  }

  /** What arrived at the table. @returns who has lost its place to it. */
  arrived({ sender, message, rows }: Arrival): string | undefined {
    for (const { at, before, after, hasChanged } of rows) {
      if (at.name !== FAIR_NAME || !hasChanged) continue;
      const ticket = this.#ticketIn(at.sort);
      if (ticket === undefined) continue;
      const lost =
        before?.uuid !== undefined && before.uuid !== after?.uuid ? this.#removed(before.uuid, sender) : undefined;
      if (lost !== undefined) return lost;
      if (after?.uuid === undefined || message.kind !== "write") continue;
      const until = Math.min(after.expires - this.scene.epoch, this.now + after.ttlMs * UNWATCHED);
      const known = this.#places.get(after.uuid);
      if (known === undefined) {
        const { uuid, owner, data } = after;
        this.#places.set(uuid, {
          uuid,
          ticket,
          side: sideNamed(data?.side),
          weight: data?.callers === 1 ? Number(data.sections) : 1,
          owner,
          since: this.now,
          until,
        });
      } else if (message.write.kind === "renew" && known.until > this.now) {
        // One that comes when the lease was over for others does not make it whole again, and neither does a late copy.
        known.until = until;
      }
    }
    return undefined;
  }

  #removed(uuid: string, { owner }: Sender): string | undefined {
    const place = this.#places.get(uuid);
    if (place === undefined) return undefined;
    const isLive = place.until > this.now;
    place.until = 0;
    return isLive && owner !== place.owner ? `${uuid} is removed by ${owner} although it waits` : undefined;
  }

  /** What a process sends. @returns what it should have known better. */
  sent({ process, owner }: Sender, message: Message): Trespass | undefined {
    if (message.kind === "query" && message.query.name === FAIR_NAME) this.#sentAt.set(message, this.now);
    const told = this.#toldTo(process);
    if (message.kind === "writeAll") {
      // A set overtakes.
      const [first] = takesOf(message).filter(({ at }) => at.name === FAIR_NAME && permitOf(at.sort) !== undefined);
      const its = first && this.#kind.sideOf(first.at.sort);
      return first && its && this.#claimed(told, owner, first, { side: its, weight: message.takes.length });
    }
    if (message.kind !== "write" || message.write.at.name !== FAIR_NAME) return undefined;
    const { write } = message;
    // A sweep is no leave: a process may sweep a stale sight of its own place, which is refused where it was renewed.
    if (write.kind === "vacate") {
      told.places.delete(write.uuid);
      told.left.add(write.uuid);
    }
    const side = this.#kind.sideOf(write.at.sort);
    return write.kind === "take" && side !== undefined
      ? this.#claimed(told, owner, write, { side, weight: 1 })
      : undefined;
  }

  #claimed(
    told: Told,
    owner: string,
    { uuid }: Take,
    { side, weight }: Pick<Claim, "side" | "weight">,
  ): Trespass | undefined {
    const { now } = this;
    const looksFrom = now - LOOK_LASTS_MS;
    if (!told.looks.some(({ sentAt }) => sentAt >= looksFrom)) {
      return {
        invariant: "no claim on an old look",
        detail: `${uuid} is claimed without a look at the queue in the last 3 s`,
      };
    }
    const ticket = this.#firstOf(told);
    const known = this.#claims.get(uuid);
    if (known === undefined) this.#claims.set(uuid, { side, weight, ticket, looksFrom });
    else known.ticket = lower(known.ticket, ticket);
    if ((known?.ticket ?? ticket) !== undefined) return undefined;
    const ahead = this.#unseen(told, owner, { side, weight, ticket: undefined, looksFrom });
    if (ahead === undefined) return undefined;
    const detail = `${uuid} is claimed by somebody without a place, while ${ahead.uuid} waits`;
    return { invariant: "nobody enters without a place", detail };
  }

  /** A reply that a process has heard. */
  heard({ process, owner }: Sender, message: Message, answer: Answer): void {
    if (answer.kind === "query" && answer.query.name === FAIR_NAME && answer.query.consistent) {
      this.#looked(this.#toldTo(process), owner, answer, this.#sentAt.get(message) ?? 0);
    }
    if (answer.kind !== "write" || answer.write.at.name !== FAIR_NAME) return;
    const { write, outcome } = answer;
    const ticket = this.#ticketIn(write.at.sort);
    if (ticket === undefined) return;
    const told = this.#toldTo(process);
    const isThere = outcome.kind === "applied" || ("uuid" in write && outcome.row?.uuid === write.uuid);
    if (write.kind === "take" && isThere && !told.left.has(write.uuid)) told.places.set(write.uuid, ticket);
    if (write.kind === "renew" && !isThere) told.places.delete(write.uuid);
    if (write.kind === "vacate" && outcome.kind === "applied") told.places.delete(write.uuid);
  }

  #looked(told: Told, owner: string, { query, page }: Extract<Answer, { kind: "query" }>, sentAt: number): void {
    const range = rangeOf(query, page);
    if (range.first > this.#range.last || range.last < this.#range.first) return;
    const shown = new Set(page.rows.flatMap(({ uuid }) => uuid ?? []));
    told.looks.push({ ...range, sentAt, shown });
    while ((told.looks[0]?.sentAt ?? 0) < this.now - REMEMBERED_MS && told.looks.length > 1) told.looks.shift();
    for (const row of page.rows) {
      const ticket = this.#ticketIn(row.sort);
      if (ticket === undefined || row.uuid === undefined || row.owner !== owner || told.left.has(row.uuid)) continue;
      told.places.set(row.uuid, ticket);
    }
    for (const [uuid, ticket] of told.places) {
      if (this.#covers(range, ticket) && !shown.has(uuid)) told.places.delete(uuid);
    }
  }

  /** A section begins. @returns whom it has overtaken. */
  took({ asking: { kind, name, weight = 1 }, uuid, owner, process, askedAt }: Served): string | undefined {
    if (name !== FAIR_NAME || askedAt === undefined) return undefined;
    const side = sideNamed(kind);
    const overtaken = this.#keepingOut({ side, weight }, (place) => place.since < askedAt && place.owner !== owner);
    if (overtaken !== undefined) return `${uuid} overtook ${overtaken.uuid}, which waited when it asked`;
    if (this.#served.has(uuid)) this.count("sections that shared a turn");
    const claim = this.#claims.get(uuid);
    if (claim === undefined || this.#served.has(uuid)) return undefined;
    this.#served.add(uuid);
    const told = this.#toldTo(process);
    const ticket = lower(claim.ticket, this.#firstOf(told));
    this.count(ticket === undefined ? "turns without a ticket" : "turns in a queue");
    if (this.#waiting(owner).length > 0) this.count("turns with others behind");
    const unseen = this.#unseen(told, owner, { side, weight, ticket, looksFrom: claim.looksFrom });
    return unseen && `${uuid} of ticket ${ticket} overtook ${unseen.uuid} of ticket ${unseen.ticket}`;
  }

  /** Somebody with a lower ticket, or any where there is none, whom no look has shown to be absent. */
  #unseen({ looks }: Told, owner: string, { side, weight, ticket, looksFrom }: Claim): Place | undefined {
    const fresh = looks.filter(({ sentAt }) => sentAt >= looksFrom);
    return this.#keepingOut(
      { side, weight },
      (place) =>
        place.owner !== owner &&
        (ticket === undefined || place.ticket < ticket) &&
        !fresh.some((look) => this.#covers(look, place.ticket) && !look.shown.has(place.uuid)),
    );
  }

  /** The first of these places, if they are so many that they keep a caller of this side out. */
  #keepingOut({ side, weight }: Pick<Claim, "side" | "weight">, isMeant: (place: Place) => boolean): Place | undefined {
    const before = this.#waiting("").filter((place) => isMeant(place) && this.#kind.blocks(place.side, side));
    const ahead = before.reduce((sum, place) => sum + place.weight, 0);
    return ahead > 0 && ahead + weight - 1 >= this.#kind.room ? before[0] : undefined;
  }

  /** The places of others that everybody has to respect. */
  #waiting(owner: string): readonly Place[] {
    const { now } = this;
    return [...this.#places.values()].filter(
      (place) =>
        place.owner !== owner &&
        place.until > now &&
        this.scene.table.row(placeAt(FAIR_NAME, place.ticket, this.#kind.keys))?.uuid === place.uuid,
    );
  }

  /** The lowest ticket that a process may count on: its row is there, whether or not others may skip it by now. */
  #firstOf({ places }: Told): bigint | undefined {
    let first: bigint | undefined;
    for (const [uuid, ticket] of places) {
      if (this.scene.table.row(placeAt(FAIR_NAME, ticket, this.#kind.keys))?.uuid === uuid)
        first = lower(first, ticket);
    }
    return first;
  }

  /** The ticket of a place in this queue. */
  #ticketIn(sort: string): bigint | undefined {
    return sort >= this.#range.first && sort <= this.#range.last ? ticketOf(sort) : undefined;
  }

  #covers({ first, last, after }: Range, ticket: bigint): boolean {
    const sort = placeSort(ticket, this.#kind.keys);
    return first <= sort && sort <= last && (after === undefined || after < sort);
  }

  #toldTo(process: Process): Told {
    return entryOf(this.#told, process, () => ({ looks: [], places: new Map(), left: new Set() }));
  }
}

/** Which sort keys a page has looked at. */
function rangeOf({ first, last, after }: RangeQuery, { next }: Page<string>): Range {
  return { first, last: next ?? last, after };
}

function lower(one: bigint | undefined, other: bigint | undefined): bigint | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  return one < other ? one : other;
}
