import { PERMITS, permitAt, permitOf, SEMAPHORE_QUEUE } from "../protocol/addresses.js";
import type { Row } from "../protocol/row.js";
import { BoundedMap } from "../session/bounded-map.js";
import { rowsOf } from "../session/session.js";
import type { RangeQuery } from "../store.js";
import type { Bid } from "../taking/bid.js";
import { type Claimed, claimBy, looksFree } from "../taking/claim.js";
import { asOne, type RowLease, type Target } from "../taking/row-lease.js";
import type { InTheWay, RowsInTheWay } from "../taking/row-take.js";
import { pagesOf } from "../taking/rows.js";
import { SetTake } from "../taking/set-take.js";
import type { Blocked } from "../taking/view.js";
import { isMarked, isMarkedFor, mark, untilFree } from "../taking/watch.js";
import { Kind, type QueueRules, type Resource, type ResourceClaim, Tenure, takeRow } from "./kind.js";
import { freePermits, heldOf, numbersTo, ownRows, permitTarget } from "./permits.js";

/** How many of the permits that a look has shown as free are tried before the look counts as outdated. */
const MOST_TRIES = 3;

/**
 * If others have marked the guessed permit, the first look comes after this many times `poll.minMs`: by default the longest pause.
 */
const FIRST_CROWDED_PAUSES = 8;

/** How many rows a look reads besides the permits: the first places, and permits of hosts that use more of them. */
const MORE_ROWS = 3;

/** For how many semaphores this process remembers the permit that it released last. */
const MOST_GUESSES = 1_000;

/**
 * A semaphore has as many rows as permits, and each row is a lock by itself. Its holder has a permit, so there are never more
 * holders than rows, whatever a process believes about the other rows.
 *
 * 1. A claim first guesses a permit that is not known to be taken, if possible the one that this process released last. As long
 *    as permits are free, the guess saves the look.
 * 2. If the guess is refused, one query shows which permits are free. The ordinary claim takes a random one of these.
 */
export class SemaphoreKind extends Kind {
  readonly id = "semaphore";
  readonly queue: QueueRules = {
    keys: SEMAPHORE_QUEUE,
    lookLimit: ({ permits }) => permits + MORE_ROWS,
    gateRows: (resource, rows) => ownRows(this.session, resource, rows),
    room: (resource, rows) => freePermits(this.session, resource, rows).length,
    weight: weightOf,
    together: ({ permits }, places) => {
      let needed = 0;
      const first = places.findIndex((place) => {
        needed += weightOf(place);
        return needed > permits;
      });
      return Math.max(1, first === -1 ? places.length : first);
    },
  };
  /** The permits that callers of this process have, or are claiming. A claim in flight has no lease yet. */
  readonly #inUse = new Map<string, Tenure | undefined>();
  /** The permit that was released last, by name: it may still be free. */
  readonly #guesses = new BoundedMap<string, number>(MOST_GUESSES);

  override async claim(claimed: ResourceClaim): Promise<Claimed<Tenure>> {
    const { session } = this;
    const { request, bid, seen, ahead } = claimed;
    const { resource } = request;
    if (resource.weight > 1) return await this.#claimSeveral(claimed);
    const send = (permit: number) => this.#take(claimed, permit);
    const guessed = seen === undefined ? this.#guess(resource) : undefined;
    if (guessed !== undefined) {
      const result = await send(guessed);
      if (result.kind === "granted") return result;
      bid.withdrawn.throwIfAborted();
      const [{ row }] = result.inTheWay;
      // The mark tells that others have waited for long, so any other permit is free only until its last holder asks again: a
      // look would not help a call that waits. A try looks all the same.
      if (bid.isPatient && outlastsPause(resource, bid) && isMarked(row, session.clock.wall())) return result;
    }
    for (let rows = seen; ; rows = undefined) {
      rows ??= await this.#look(resource, bid, { consistent: true });
      const free = freePermits(session, resource, rows).filter((permit) => !this.#isInUse(resource, permit));
      // A caller that stands behind others in the queue leaves them the first of the free permits.
      const inOrder = ahead === undefined ? fromAnywhere(free, session.random) : free.slice(ahead);
      let [inTheWay] = heldOf(session, resource, rows);
      for (const permit of inOrder.slice(0, MOST_TRIES)) {
        // Another bid of this process may have come to it while the one before was asked for.
        if (this.#isInUse(resource, permit)) continue;
        const result = await send(permit);
        if (result.kind === "granted") return result;
        [inTheWay] = result.inTheWay;
        bid.withdrawn.throwIfAborted();
      }
      if (inTheWay !== undefined) {
        bid.saw(inTheWay.row);
        return { kind: "held", inTheWay: [inTheWay] };
      }
      // Other callers of this process are claiming all of the free permits.
      await bid.again();
    }
  }

  /**
   * Claims several permits, all or none, by one transaction. Each refused one costs two write units for each permit, so it is only
   * sent for permits that a consistent look has just shown as free.
   */
  async #claimSeveral(claimed: ResourceClaim): Promise<Claimed<Tenure>> {
    const { request, bid, ahead } = claimed;
    const { resource } = request;
    const { weight } = resource;
    for (let [tries, rows] = [1, claimed.seen]; ; rows = undefined) {
      rows ??= await this.#look(resource, bid, { consistent: true });
      bid.withdrawn.throwIfAborted();
      const free = freePermits(this.session, resource, rows).filter((permit) => !this.#isInUse(resource, permit));
      const inOrder = ahead === undefined ? fromAnywhere(free, this.session.random) : free.slice(ahead);
      const inTheWay = heldOf(this.session, resource, rows);
      if (inOrder.length >= weight) {
        const result = await this.#takeAll(claimed, inOrder.slice(0, weight));
        if (result.kind === "granted" || tries === MOST_TRIES) return result;
        bid.withdrawn.throwIfAborted();
        tries += 1;
      } else if (isNotEmpty(inTheWay)) {
        bid.saw(inTheWay[0].row);
        return { kind: "held", inTheWay };
      } else {
        // Other callers of this process are claiming the free permits.
        await bid.again();
      }
    }
  }

  /** Looks at the permits until one of them looks free, or as many as are needed. @returns what it has seen last. */
  override async watch(resource: Resource, inTheWay: RowsInTheWay, bid: Bid): Promise<readonly Row[] | undefined> {
    const { session } = this;
    const { settings, weight } = resource;
    const [first] = inTheWay;
    const { view } = bid;
    const { blocked } = view;
    const { minMs, maxMs } = settings.poll;
    view.inTheWay = undefined;
    if (looksFree(session, first.target, first.row)) {
      // Another call of this process is claiming this permit.
      await bid.again();
      return undefined;
    }
    // The pauses keep growing across claims that came too late: in a crowd, a look often shows a permit that is already taken.
    // If others have waited for long, a caller that comes later looks no more often than they do.
    const { polling } = view;
    // A refused guess shows only one permit: others may be free, and the waiter that marked this one may have gone.
    const refused: RowsInTheWay = weight > 1 ? inTheWay : [first];
    for (let held = refused, hasLooked = false; ; hasLooked = true) {
      view.inTheWay = held;
      bid.saw(held[0].row);
      // A permit looked free, but the claim for it was refused: its holder keeps taking it, and has to learn that others wait.
      await this.#contend(resource, hasLooked ? held : [first], bid, blocked);
      const isCrowded = outlastsPause(resource, bid) && held.some(({ row }) => isMarked(row, session.clock.wall()));
      if (isCrowded) polling.set(hasLooked ? maxMs : Math.min(maxMs, FIRST_CROWDED_PAUSES * minMs));
      await polling.pause(bid, settings.poll, this.#freeIn(resource, held));
      const rows = await this.#look(resource, bid, { consistent: false });
      bid.withdrawn.throwIfAborted();
      const seen = heldOf(session, resource, rows);
      // Several are only claimed by a consistent look.
      if (freePermits(session, resource, rows).length >= weight || !isNotEmpty(seen)) {
        view.inTheWay = undefined;
        bid.tries();
        return weight > 1 ? undefined : rows;
      }
      held = seen;
    }
  }

  override ended(own: Tenure, isFree: boolean): void {
    for (const { at } of rowsOf(own.lease.row)) {
      const permit = permitOf(at.sort) ?? 0;
      const use = useOf(own.resource, permit);
      // `ended` may be called twice for one lease, and another lease of this process may have the row by then.
      if (this.#inUse.get(use) !== own) continue;
      this.#inUse.delete(use);
      if (isFree) this.#guesses.set(own.resource.name, permit);
    }
  }

  #take(claimed: ResourceClaim, permit: number): Promise<Claimed<Tenure>> {
    const target = permitTarget(claimed.request.resource, permit);
    return this.#using(claimed, [permit], () => takeRow(this.session, claimed, target));
  }

  #takeAll(claimed: ResourceClaim, permits: readonly number[]): Promise<Claimed<Tenure>> {
    const { session } = this;
    const { request, bid, until } = claimed;
    const { resource, data } = request;
    const targets = permits.toSorted((one, other) => one - other).map((permit) => permitTarget(resource, permit));
    return this.#using(claimed, permits, async () => {
      const take = () => new SetTake(session, targets, data, session.uuid());
      const result = await claimBy(session, targets[0] as Target, bid, { until }, take);
      if (result.kind !== "granted") return result;
      const row = asOne(result.granted as unknown as readonly [RowLease, ...RowLease[]]);
      return { kind: "granted", granted: new Tenure(session, request, row) };
    });
  }

  /** Claims permits. Meanwhile, and as long as a lease on them lasts, other callers of this process leave them alone. */
  async #using(
    { request: { resource } }: ResourceClaim,
    permits: readonly number[],
    take: () => Promise<Claimed<Tenure>>,
  ): Promise<Claimed<Tenure>> {
    const uses = permits.map((permit) => useOf(resource, permit));
    for (const use of uses) this.#inUse.set(use, undefined);
    try {
      const result = await take();
      if (result.kind === "granted") for (const use of uses) this.#inUse.set(use, result.granted);
      return result;
    } finally {
      for (const use of uses) if (this.#inUse.get(use) === undefined) this.#inUse.delete(use);
    }
  }

  /** In how many ms the permits that are needed look free, if nothing is written to those that are held. */
  #freeIn({ permits, weight }: Resource, held: RowsInTheWay): number {
    const each = held.map(({ target, row }) => untilFree(this.session, target, row));
    const missing = weight === 1 ? 0 : permits - held.length;
    return each.toSorted((one, other) => one - other)[weight - 1 - missing] ?? Number.POSITIVE_INFINITY;
  }

  /** A permit that is not known to be taken. */
  #guess(resource: Resource): number | undefined {
    const { name, permits } = resource;
    const mayBeFree = (permit: number): boolean => {
      const { at, settings } = permitTarget(resource, permit);
      return !this.#isInUse(resource, permit) && this.session.sightings.mayBeFree(at, settings.takeover);
    };
    const last = this.#guesses.get(name);
    if (last !== undefined && last < permits && mayBeFree(last)) return last;
    return fromAnywhere(numbersTo(permits), this.session.random).find(mayBeFree);
  }

  /** Learns of the marks on held permits, and marks one that has none and is not this process's. */
  async #contend(resource: Resource, held: RowsInTheWay, bid: Bid, blocked: Blocked): Promise<void> {
    const { session } = this;
    for (const { row } of held) session.contended().waitsFor(row);
    const unmarked = held.filter(({ target, row }) => {
      const isOwn = this.#isInUse(resource, permitOf(target.at.sort) ?? 0);
      return row.uuid !== undefined && !isOwn && !isMarkedFor(session, resource.settings, row);
    });
    const [one] = fromAnywhere(unmarked, session.random);
    if (one !== undefined) await mark(session, one.target, one.row, bid, { blocked });
  }

  /** The rows of the permits that this caller knows of. */
  async #look(resource: Resource, bid: Bid, { consistent }: Pick<RangeQuery, "consistent">): Promise<readonly Row[]> {
    const { session } = this;
    const { name, settings, permits } = resource;
    const range = { name, ...PERMITS, limit: permits + MORE_ROWS, consistent, takeover: settings.takeover };
    const rows: Row[] = [];
    for await (const { page } of pagesOf(session, bid.ask, range)) rows.push(...page.rows);
    const own = ownRows(session, resource, rows);
    const there = new Set(own.map(({ sort }) => permitOf(sort)));
    // A permit without a row is free, whatever was seen of it before.
    for (const permit of numbersTo(permits))
      if (!there.has(permit)) session.sightings.note(permitAt(name, permit), undefined);
    return own;
  }

  #isInUse(resource: Resource, permit: number): boolean {
    return this.#inUse.has(useOf(resource, permit));
  }
}

const useOf = ({ name }: Resource, permit: number): string => `${permit}/${name}`;

/** How many permits the callers that share a place need: all of them go before the places behind it. */
function weightOf({ data }: Row): number {
  return typeof data?.sections === "number" ? Math.max(1, data.sections) : 1;
}

/** Whether the call has time for a look after the longest pause: without that time, it would end without a look. */
function outlastsPause({ settings }: Resource, { remainingMs }: Bid): boolean {
  return remainingMs > 2 * settings.poll.maxMs;
}

const isNotEmpty = (inTheWay: readonly InTheWay[]): inTheWay is RowsInTheWay => inTheWay.length > 0;

/** All of the values in order, from a random one on, with those before it at the end. */
function fromAnywhere<Value>(values: readonly Value[], random: () => number): Value[] {
  const start = Math.floor(random() * values.length);
  return [...values.slice(start), ...values.slice(0, start)];
}
