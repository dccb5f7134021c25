import { newest, newestHeld, type Resource, resourceKey, type Tenure } from "../kinds/kind.js";
import type { Row } from "../protocol/row.js";
import { awaitShared } from "../session/abort-listening.js";
import { BoundedMap } from "../session/bounded-map.js";
import { firstTimeoutMs, sendOnce } from "../session/requests.js";
import { isTransient, LONGEST_PAUSE_MS } from "../session/retry.js";
import type { Session } from "../session/session.js";
import type { Bid } from "../taking/bid.js";
import { endedBy, looksFree, tryClaim } from "../taking/claim.js";
import { tickNow } from "../taking/known-time.js";
import type { Ask } from "../taking/rows.js";
import { leaseWasOver } from "../taking/too-slow.js";
import { mark, untilFree } from "../taking/watch.js";
import { type AdmissionLook, FairLine } from "./fair-line.js";
import { type ClaimHow, type LineBid, NOBODY_WAITS, type TryOutcome } from "./line.js";
import { Pace } from "./pace.js";
import type { Place } from "./place.js";
import type { Turns } from "./turns.js";

/** No copy of a claim leaves later than this after the look that it relies on: it could overtake callers that came since. */
const LOOK_LASTS_MS = 3_000;

/** While sections of this process run, callers are gathered for this long before a place is taken for all of them. */
const GATHER_MS = 50;

/** How long a look still tells how far a place is from the front of the queue. */
const SEEN_LASTS_MS = 1_000;

/** For how many names the pace is remembered. */
const MOST_PACES = 1_000;

/**
 * Grants locks first come, first served, among all hosts.
 *
 * The queue decides the order. Exclusion comes from the lock's own rows alone, which are taken by the ordinary claim. Places
 * are in the order of their tickets, which is the order of drawing. The callers of one process share places: see
 * {@link FairLine}. A caller with a place enters on one consistent query that shows its own row, and room for it after all
 * living places before it. So only a claim whose look preceded a waiter's row can overtake that waiter. A row that is written
 * late still has the place of its ticket; only callers that entered meanwhile have gone before it.
 */
export class FairQueue {
  readonly #session: Session;
  readonly #turns: Turns;
  readonly #paces = new BoundedMap<string, Pace>(MOST_PACES);

  constructor(session: Session, turns: Turns) {
    this.#session = session;
    this.#turns = turns;
  }

  /** The line of this process's callers for one fair lock. The pace of the lock's queue is remembered after the line is gone. */
  newLine(resource: Resource): FairLine {
    const key = resourceKey(resource);
    const pace = this.#paces.get(key) ?? new Pace(this.#session);
    this.#paces.set(key, pace);
    return new FairLine(this.#session, this.#turns, resource, { queue: this, pace });
  }

  /**
   * Waits until it is the turn of this process's first waiter, and takes the lock for it.
   *
   * 1. Without a place: if nobody else waits and the lock looks free, claim it. Otherwise take a place.
   * 2. Look at the lock's rows and the first places, until there is room for the own place.
   * 3. Look once more, consistently: the own row is there, and there is room for it after the places before it. Claim.
   *
   * @throws the store's error if it is not transient, or if the table never answered; what ended the call.
   */
  async acquire(line: FairLine, bid: LineBid): Promise<Tenure> {
    // Also where nobody else has a turn: callers that ask in the same turn as this one share its look.
    await this.#turns.standBack(bid.asker.request.resource, bid);
    // This process may have held the lock since the last look, so the rows of the lock in that look are stale.
    if (line.seen !== undefined && line.capacity === 1) line.seen = { ...line.seen, gate: [] };
    // The look after this process's last section may have shown that other hosts wait.
    let mayBeFree = !line.admission.othersWait;
    for (;;) {
      bid.withdrawn.throwIfAborted();
      const own = line.places.first;
      if (own !== undefined) {
        const lease = await this.#enter(line, own, bid);
        if (lease !== undefined) return lease;
        // The lease of this place ended before its first renewal, and that of the next place may end as soon.
        if (own.wasTooShort) leaseWasOver(bid, bid.asker.request.resource);
        await bid.again();
        continue;
      }
      const result = mayBeFree ? await this.#takeWithoutPlace(line, bid, line.knownLook) : undefined;
      if (result?.kind === "granted") return result.granted;
      // Without a result, the table has not answered the claim in time.
      if (result !== undefined || !mayBeFree) bid.waits(line.whoIsAhead);
      mayBeFree = false;
      bid.withdrawn.throwIfAborted();
      // Callers whose sections have just ended may ask again at once. This lets them share the place.
      if (line.admission.upTo > 0) await this.#session.clock.sleep(0, bid.withdrawn);
      try {
        await awaitShared(bid.withdrawn, line.draw());
        this.drawForUnserved(line);
      } catch (error) {
        this.#waitOut(bid, error);
        await bid.again();
      }
    }
  }

  /** One try. It is refused if anybody is ahead, and draws no ticket. */
  async tryAcquire(line: FairLine, bid: LineBid): Promise<TryOutcome> {
    for (;;) {
      const result = await this.#takeWithoutPlace(line, bid);
      if (result !== undefined) return result;
      bid.withdrawn.throwIfAborted();
      await bid.again();
    }
  }

  /**
   * Whether the lease, whose section has ended, passes to the next caller of this process: only if it is that caller's turn. A look
   * that admitted that caller counts for `handOverMs`: a caller without a place, which only marks the row, may come at any time.
   */
  async mayPass(line: FairLine, own: Tenure, until: number): Promise<boolean> {
    const isRecent = this.#session.clock.atMost() - line.lookedAt < own.lease.settings.handOverMs;
    if (line.admitsFirst ? isRecent : line.admission.othersWait) return line.admitsFirst;
    await this.#lookAgain(line, own, until);
    return line.admitsFirst;
  }

  /** Starts to get a place for the callers behind the first, if they need one. */
  drawForUnserved(line: FairLine): void {
    if (line.isDrawingForUnserved || line.unserved === undefined) return;
    line.isDrawingForUnserved = true;
    this.#session.detach(this.#drawWhileUnserved(line));
  }

  /** An error here is not reported: the bid meets it in its own requests. */
  async #drawWhileUnserved(line: FairLine): Promise<void> {
    try {
      for (let { unserved } = line; unserved !== undefined; { unserved } = line) {
        const [own] = line.leases;
        if (line.hasBid || own === undefined) {
          // The bid takes the lock, or a place for all.
          if (line.places.first === undefined && !line.awaitsHolders) return;
          await this.#drawFor(line);
          continue;
        }
        const gatherMs = GATHER_MS - unserved.call.waitedMs;
        if (gatherMs > 0) {
          await this.#session.clock.sleep(Math.ceil(gatherMs), this.#session.closing);
          continue;
        }
        if (!line.admission.othersWait) await this.#lookAgain(line, own);
        if (line.unserved === unserved && line.leases.has(own)) await this.#drawFor(line);
      }
    } finally {
      // Reset this first: a caller that asks from here on must start `#drawWhileUnserved` again.
      line.isDrawingForUnserved = false;
      line.tidy();
    }
  }

  /**
   * Draws a place. After a transient failure it waits and returns, for another try: the callers behind the first send no
   * requests themselves.
   */
  async #drawFor(line: FairLine): Promise<void> {
    try {
      await line.draw();
    } catch (error) {
      if (error === NOBODY_WAITS || line.unserved === undefined) return;
      if (!isTransient(error)) throw error;
      await this.#session.clock.sleep(LONGEST_PAUSE_MS, this.#session.closing);
    }
  }

  /**
   * Looks whose turn comes next, while this process has the lock. A failed look changes nothing.
   * @param until how long the answer is waited for, on `atMost`.
   */
  async #lookAgain(line: FairLine, own: Tenure, until: number = Number.POSITIVE_INFINITY): Promise<void> {
    const { settings } = own.resource;
    const { at, uuid } = own.lease.row;
    const asked = { kind: "read", firstTimeoutMs: firstTimeoutMs(settings.ttlMs), until: () => until } as const;
    const ask: Ask = (request) => sendOnce(this.#session, asked, request);
    const look = await line.look(ask, own.resource, { isConsistent: true }).catch(() => undefined);
    if (look === undefined || !line.leases.has(own)) return;
    const { admission } = look;
    const row = look.gate.find(({ sort }) => sort === at.sort);
    if (row?.uuid !== uuid) {
      // For example, the row was unlocked by force. If a reissue has just changed the uuid instead, the next caller only has to
      // take the row from the table.
      own.close();
      return;
    }
    // A caller that was entitled to this lease before stays entitled.
    line.admission = { ...admission, upTo: Math.max(line.admission.upTo, admission.upTo) };
    // Callers of a plain mutex and of a set have no place: only their mark on the row shows that they wait.
    if (admission.othersWait || row.wanted === undefined) return;
    const contention = this.#session.contended();
    contention.sees(row);
    if (!contention.isTurnOver(at, settings.handOverMs)) return;
    line.admission = { upTo: 0, othersWait: false };
    contention.giveTurn(at, settings.poll.maxMs);
  }

  /** Takes the lock without a place, if nobody waits and it looks free. @returns undefined if no answer came in time. */
  async #takeWithoutPlace(line: FairLine, bid: LineBid, known?: AdmissionLook): Promise<TryOutcome | undefined> {
    const { resource, once } = bid.asker.request;
    let look = known ?? (await line.look(bid.ask, resource, { isConsistent: true }));
    const tick = once && (await tickNow(this.#session, resource.at, once, bid));
    // The call may have waited for its tick to begin, and others may have come meanwhile.
    if (once !== undefined && this.#session.clock.atMost() - look.sentAt > LOOK_LASTS_MS / 2)
      look = await line.look(bid.ask, resource, { isConsistent: true });
    const { gate, admission, sentAt, isWhole } = look;
    bid.withdrawn.throwIfAborted();
    const inTheWay = newestHeld(this.#session, resource, gate);
    if (inTheWay !== undefined) bid.saw(inTheWay);
    line.admission = admission;
    if (admission.othersWait) {
      bid.waits(line.whoIsAhead);
      const row = newest(gate);
      return { kind: (row && endedBy(row, tick, once)) ?? "held" };
    }
    // Only the claim can tell whether a tick is done.
    if (once === undefined && resource.kind.queue.room(resource, gate) < resource.weight) return { kind: "held" };
    // Places may have been drawn for this process since the look was asked for. A look that stops at one of them has not shown who waits
    // behind it, and counts as long as that place does.
    const { first: place } = line.places;
    if (!isWhole && place === undefined) return undefined;
    const standsUntil = (): number => (isWhole || place === undefined ? Number.POSITIVE_INFINITY : place.until());
    const until = (): number => Math.min(sentAt + LOOK_LASTS_MS, standsUntil(), bid.until());
    // The look counts for the tick that it was made for.
    const named = once && tick !== undefined ? { ...once, kind: "tick" as const, tick } : undefined;
    return await this.#claim(line, bid, { until, seen: gate, ahead: 0, once: named });
  }

  /**
   * Waits until there is room for the own place after the places before it, and takes the lock.
   * @returns undefined if the place was lost, or is not needed any more.
   */
  async #enter(line: FairLine, place: Place, bid: LineBid): Promise<Tenure | undefined> {
    const session = this.#session;
    const { resource } = bid.asker.request;
    await line.restOfPause(place, bid);
    // A look from just before the place was drawn tells how far the place is from the front.
    const { seen } = line;
    const isRecent = seen !== undefined && session.clock.atMost() - seen.sentAt < SEEN_LASTS_MS;
    let recent = isRecent ? { ...seen, isConsistent: false } : undefined;
    for (let isConsistent = false; line.places.first === place; ) {
      bid.withdrawn.throwIfAborted();
      const look = recent ?? (await line.look(bid.ask, resource, { isConsistent }));
      [recent, isConsistent] = [undefined, false];
      bid.withdrawn.throwIfAborted();
      // All who share the place may have gone meanwhile: it admits nobody behind them. Or it was lost: its callers need another.
      if (line.places.first !== place) return undefined;
      const { gate } = look;
      throwIfInsatiable(session, bid, gate);
      const room = resource.kind.queue.room(resource, gate);
      const ahead = line.ahead(look, place.ticket);
      // Both may be infinite.
      if (ahead > 0 && ahead + resource.weight - 1 >= room) {
        const row = newestHeld(session, resource, gate);
        if (row !== undefined) bid.saw(row);
        bid.view.unblock();
        await line.pauseFor(line.pause(look, place.ticket, ahead), place, bid, line.whoIsAhead);
        continue;
      }
      if (look.isConsistent && !look.places.some(({ uuid }) => uuid === place.uuid)) {
        if (line.reaches(look, place)) place.lose();
        // There was no room behind the last place that it shows, and now there is.
        else await bid.again();
        continue;
      }
      if (room < resource.weight) {
        const ms = line.pace.next(resource.settings.poll);
        await this.#markWhenBlocked(bid, gate);
        const free = gate.map((row) => untilFree(session, { ...resource, at: row }, row));
        await line.pauseFor(Math.min(ms, ...free), place, bid, undefined);
        // If the next look is soon, it is consistent: a claim may then follow it directly.
        isConsistent = ms < resource.settings.poll.maxMs / 2;
        continue;
      }
      bid.tries();
      if (!look.isConsistent) {
        isConsistent = true;
        continue;
      }
      line.admission = look.admission;
      const until = (): number => Math.min(look.sentAt + LOOK_LASTS_MS, place.until(), bid.until());
      const result = await this.#claim(line, bid, { until, seen: gate, ahead });
      if (result?.kind === "granted") return result.granted;
      await bid.again();
    }
    return undefined;
  }

  /**
   * It is this process's turn, but others hold all of the lock's rows. After a while it marks one row, as a waiter of a plain
   * mutex does.
   */
  async #markWhenBlocked(bid: LineBid, gate: readonly Row[]): Promise<void> {
    const { resource } = bid.asker.request;
    const session = this.#session;
    for (const row of gate) session.contended().waitsFor(row);
    const row = newestHeld(session, resource, gate);
    if (row === undefined) return;
    bid.saw(row);
    await mark(session, { ...resource, at: row }, row, bid);
  }

  /** The ordinary claim. @returns undefined if no answer came while its look was valid. */
  async #claim(line: FairLine, bid: LineBid, how: ClaimHow): Promise<TryOutcome | undefined> {
    const { once } = bid.asker.request;
    const onTaken = (): void => {
      line.awaitsHolders = true;
      this.drawForUnserved(line);
    };
    try {
      return await tryClaim(this.#session, bid, () => line.claim(bid, { ...how, onTaken }));
    } catch (error) {
      this.#waitOut(bid, error);
      // Do not repeat a claim for a tick: if this one was granted unseen, the next would find the tick done, although nothing
      // ran for it.
      if (once !== undefined) throw error;
      return undefined;
    } finally {
      line.awaitsHolders = false;
    }
  }

  /** Returns if the failure is to be waited out. @throws what ended the call; the failure, if another try is of no use. */
  #waitOut(bid: Bid, error: unknown): void {
    bid.withdrawn.throwIfAborted();
    if (!isTransient(error) || this.#session.clock.atMost() >= bid.until()) throw error;
  }
}

/**
 * Ends a call that needs more permits than another host says there are: the callers of that host would never see room behind its
 * place, and wait for as long as it does.
 */
function throwIfInsatiable(session: Session, bid: LineBid, gate: readonly Row[]): void {
  const { call, request } = bid.asker;
  const { weight, settings } = request.resource;
  const other = gate.find((row) => (row.permits ?? weight) < weight && !looksFree(session, { at: row, settings }, row));
  if (other === undefined) return;
  call.missed("timeout");
  const because =
    `Another host, ${other.owner}, has ${other.permits} permits for it, and this call needs ${weight}: hosts that wait behind it ` +
    "would do so for ever. Deploy one number everywhere (dynamutex:permits-differ)";
  throw call.timeout(because);
}
