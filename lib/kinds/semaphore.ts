import { publish } from "../diagnostics.js";
import { PERMITS, permitAt, permitOf, SEMAPHORE_QUEUE } from "../protocol/addresses.js";
import type { Row } from "../protocol/row.js";
import { BoundedMap } from "../session/bounded-map.js";
import type { Session } from "../session/session.js";
import type { RangeQuery } from "../store.js";
import { type Claimed, looksFree, type RowsInTheWay, type Seeing } from "../taking/claim.js";
import { Polling } from "../taking/polling.js";
import type { Target } from "../taking/row-lease.js";
import type { InTheWay } from "../taking/row-take.js";
import { pagesOf } from "../taking/rows.js";
import type { Wait } from "../taking/wait.js";
import { type Blocked, isMarked, isMarkedFor, mark, untilFree } from "../taking/watch.js";
import { Kind, newest, type OwnLease, type QueueRules, type Resource, type ResourceClaim, takeRow } from "./kind.js";

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
    room: (seeing, resource, rows) => freePermits(seeing, resource, rows).length,
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
  readonly #inUse = new Map<string, OwnLease | undefined>();
  /** The permit that was released last, by name: it may still be free. */
  readonly #guesses = new BoundedMap<string, number>(MOST_GUESSES);

  override async claim(claimed: ResourceClaim): Promise<Claimed<OwnLease>> {
    const { session } = this;
    const { request, wait, seen, ahead } = claimed;
    const { resource } = request;
    const send = (permit: number) => this.#take(claimed, permit);
    const guessed = seen === undefined ? this.#guess(resource, wait) : undefined;
    if (guessed !== undefined) {
      const result = await send(guessed);
      if (result.kind === "granted") return result;
      wait.endSignal.throwIfAborted();
      const [{ row }] = result.inTheWay;
      // The mark tells that others have waited for long, so any other permit is free only until its last holder asks again: a
      // look would not help a call that waits. A try looks all the same.
      if (wait.isPatient && outlastsPause(resource, wait) && isMarked(row, session.clock.wall())) return result;
    }
    for (let rows = seen; ; rows = undefined) {
      rows ??= await this.#look(resource, wait, { consistent: true });
      const free = freePermits(wait, resource, rows).filter((permit) => !this.#isInUse(resource, permit));
      // A caller that stands behind others in the queue leaves them the first of the free permits.
      const inOrder = ahead === undefined ? fromAnywhere(free, session.random) : free.slice(ahead);
      let inTheWay = newestOf(resource, rows);
      for (const permit of inOrder.slice(0, MOST_TRIES)) {
        const result = await send(permit);
        if (result.kind === "granted") return result;
        [inTheWay] = result.inTheWay;
        wait.endSignal.throwIfAborted();
      }
      if (inTheWay !== undefined) {
        wait.saw(inTheWay.row);
        return { kind: "held", inTheWay: [inTheWay] };
      }
      // Other callers of this process are claiming all of the free permits.
      await wait.again();
    }
  }

  /** Looks at the permits until one of them looks free. @returns what it has seen last. */
  override async watch(
    resource: Resource,
    [first]: RowsInTheWay,
    wait: Wait,
    blocked: Blocked,
  ): Promise<readonly Row[] | undefined> {
    const { session } = this;
    const { settings } = resource;
    const { minMs, maxMs } = settings.poll;
    if (looksFree(wait, first.target, first.row)) {
      // Another call of this process is claiming this permit.
      await wait.again();
      return undefined;
    }
    // The pauses keep growing across claims that came too late: in a crowd, a look often shows a permit that is already taken.
    // If others have waited for long, a caller that comes later looks no more often than they do.
    blocked.polling ??= new Polling(session, settings.poll);
    wait.saw(first.row);
    // A permit looked free, but the claim for it was refused: its holder keeps taking it, and has to learn that others wait.
    await this.#contend(resource, [first.row], wait, blocked);
    // A refused guess shows only one permit: others may be free, and the waiter that marked this one may have gone.
    for (let rows: readonly Row[] = [first.row], hasLooked = false; ; hasLooked = true) {
      const isCrowded = outlastsPause(resource, wait) && rows.some((row) => isMarked(row, session.clock.wall()));
      if (isCrowded) blocked.polling.set(hasLooked ? maxMs : Math.min(maxMs, FIRST_CROWDED_PAUSES * minMs));
      const freeIn = Math.min(...rows.map((row) => untilFree(session, wait, { at: row, settings }, row)));
      await blocked.polling.pause(wait, freeIn);
      rows = await this.#look(resource, wait, { consistent: false });
      wait.endSignal.throwIfAborted();
      const inTheWay = newestOf(resource, rows);
      if (inTheWay === undefined || freePermits(wait, resource, rows).length > 0) return rows;
      wait.saw(inTheWay.row);
      await this.#contend(resource, rows, wait, blocked);
    }
  }

  override ended(own: OwnLease, isFree: boolean): void {
    const permit = permitOf(own.lease.row.at.sort) ?? 0;
    const use = useOf(own.resource, permit);
    // `ended` may be called twice for one lease, and another lease of this process may have the row by then.
    if (this.#inUse.get(use) !== own) return;
    this.#inUse.delete(use);
    if (isFree) this.#guesses.set(own.resource.name, permit);
  }

  async #take(claimed: ResourceClaim, permit: number): Promise<Claimed<OwnLease>> {
    const { resource } = claimed.request;
    const use = useOf(resource, permit);
    this.#inUse.set(use, undefined);
    try {
      const result = await takeRow(this.session, claimed, permitTarget(resource, permit));
      if (result.kind === "granted") this.#inUse.set(use, result.granted);
      return result;
    } finally {
      if (this.#inUse.get(use) === undefined) this.#inUse.delete(use);
    }
  }

  /** A permit that is not known to be taken. */
  #guess(resource: Resource, { sightings }: Wait): number | undefined {
    const { name, permits } = resource;
    const mayBeFree = (permit: number): boolean => {
      const { at, settings } = permitTarget(resource, permit);
      return !this.#isInUse(resource, permit) && sightings.mayBeFree(at, settings.takeover);
    };
    const last = this.#guesses.get(name);
    if (last !== undefined && last < permits && mayBeFree(last)) return last;
    return fromAnywhere(numbersTo(permits), this.session.random).find(mayBeFree);
  }

  /** Learns of the marks on permits that are in the way, and marks one of the held permits that have no mark. */
  async #contend(resource: Resource, rows: readonly Row[], wait: Wait, blocked: Blocked): Promise<void> {
    const { session } = this;
    for (const row of rows) session.contended().waitsFor(row);
    const unmarked = rows.filter((held) => held.uuid !== undefined && !isMarkedFor(session, resource.settings, held));
    const [row] = fromAnywhere(unmarked, session.random);
    if (row !== undefined) await mark(session, { ...resource, at: row }, { row, blocked, wait });
  }

  /** The rows of the permits that this caller knows of. */
  async #look(resource: Resource, wait: Wait, { consistent }: Pick<RangeQuery, "consistent">): Promise<readonly Row[]> {
    const { session } = this;
    const { name, settings, permits } = resource;
    const range = { name, ...PERMITS, limit: permits + MORE_ROWS, consistent, takeover: settings.takeover };
    const rows: Row[] = [];
    for await (const { page } of pagesOf(session, wait, range)) rows.push(...page.rows);
    const own = ownRows(session, resource, rows);
    const there = new Set(own.map(({ sort }) => permitOf(sort)));
    // A permit without a row is free, whatever was seen of it before.
    for (const permit of numbersTo(permits))
      if (!there.has(permit)) wait.sightings.note(permitAt(name, permit), undefined);
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
function outlastsPause({ settings }: Resource, { remainingMs }: Wait): boolean {
  return remainingMs > 2 * settings.poll.maxMs;
}

/** The permits that a claim made now would take, in order. */
function freePermits(seeing: Seeing, { settings, permits }: Resource, rows: readonly Row[]): number[] {
  const held = rows.filter((row) => !looksFree(seeing, { at: row, settings }, row));
  const taken = new Set(held.map(({ sort }) => permitOf(sort)));
  return numbersTo(permits).filter((permit) => !taken.has(permit));
}

/** The rows of the permits that this caller knows of. Reports once if a holder knows of another number of permits. */
function ownRows(session: Session, { name, permits }: Resource, rows: readonly Row[]): readonly Row[] {
  const other = rows.find((row) => row.permits !== undefined && row.permits !== permits);
  if (other?.permits !== undefined && session.isNews(`${permits}/${other.permits}/${name}`))
    publish("dynamutex:permits-differ", { name, permits, others: other.permits, owner: other.owner });
  return rows.filter(({ sort }) => (permitOf(sort) ?? permits) < permits);
}

function newestOf(resource: Resource, rows: readonly Row[]): InTheWay | undefined {
  const row = newest(rows);
  return row && { target: permitTarget(resource, permitOf(row.sort) ?? 0), row };
}

function permitTarget({ name, settings, permits }: Resource, permit: number): Target {
  return { at: permitAt(name, permit), settings, permits };
}

const numbersTo = (end: number): number[] => Array.from({ length: end }, (_, index) => index);

/** All of the values in order, from a random one on, with those before it at the end. */
function fromAnywhere<Value>(values: readonly Value[], random: () => number): Value[] {
  const start = Math.floor(random() * values.length);
  return [...values.slice(start), ...values.slice(0, start)];
}
