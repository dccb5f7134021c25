import { newest, type OwnLease, type Resource, resourceKey } from "../kinds/kind.js";
import type { Row } from "../protocol/row.js";
import { onAbort } from "../session/abort-listening.js";
import { BoundedMap } from "../session/bounded-map.js";
import { attemptMs, sendOnce } from "../session/requests.js";
import { isTransient, LONGEST_PAUSE_MS } from "../session/retry.js";
import type { Session } from "../session/session.js";
import { type Claimed, endedBy, type Refusal, tryClaim } from "../taking/claim.js";
import { tickNow } from "../taking/known-time.js";
import { leaseWasOver } from "../taking/too-slow.js";
import type { Wait } from "../taking/wait.js";
import { blockedFromNow, mark, untilFree } from "../taking/watch.js";
import type { Call, ClaimHow } from "./call.js";
import { FairLine, NOBODY_WAITS } from "./fair-line.js";
import { Pace } from "./pace.js";
import type { Place } from "./place.js";

/** No copy of a claim leaves later than this after the look that it relies on, or it might overtake those who came since. */
const LOOK_LASTS_MS = 3_000;

/** For how long, while sections of this process run, those who ask are gathered before a place is taken for them. */
const GATHER_MS = 50;

/** For how long a look still says how far it is to the front. */
const SEEN_LASTS_MS = 1_000;

/** Of how many names the pace is remembered. */
const MOST_PACES = 1_000;

/** What one try of a call comes to: a claim, or none because others are ahead. */
type Tried = Claimed<OwnLease> | { readonly kind: Refusal };

/**
 * Takes locks in turn: first come, first served, among all hosts.
 *
 * Order comes from the queue, and exclusion from the lock's own rows alone: they are taken by the ordinary claim. Places are in
 * the order of their tickets, which is the order of drawing. The callers of one process share places: see {@link FairLine}.
 * A caller with a place enters on one consistent query that shows its own row, and room for it after all living places before
 * it. So a waiter whose row is there is overtaken only by a claim whose look preceded that row. A row that is written late still
 * has the place of its ticket; only callers that entered meanwhile have gone before it.
 */
export class FairQueue {
  readonly #session: Session;
  readonly #paces = new BoundedMap<string, Pace>(MOST_PACES);

  constructor(session: Session) {
    this.#session = session;
  }

  /** For the callers of this process that want this lock. How fast its queue has moved lately is remembered longer than the line. */
  newLine(resource: Resource): FairLine {
    const key = resourceKey(resource);
    const pace = this.#paces.get(key) ?? new Pace(this.#session);
    this.#paces.set(key, pace);
    const line = new FairLine(this.#session, resource, pace, () => {
      // The callers behind the front may need another place. That waits for the next microtask: the caller that reads the
      // loss may be about to draw one itself.
      this.#session.detach(Promise.resolve().then(() => this.attend(line)));
    });
    return line;
  }

  /**
   * Waits for the lock's turn, for the call at the front of its process's line.
   *
   * 1. Where no place serves it: if nobody else waits and the lock looks free, claim it. Else take a place.
   * 2. Look at the lock's rows and the first places, until there is room for the own one.
   * 3. Look once more, consistent: the own row is there, and there is room for it after those before it. Claim.
   *
   * @throws the store's error if it is not transient, or if the table never answered; what ended the wait.
   */
  async lead(line: FairLine, call: Call): Promise<void> {
    const { resource, wait } = call;
    // This process may have held the lock since that look, so the rows that it showed are stale.
    if (line.seen !== undefined && line.capacity === 1) line.seen = { ...line.seen, gate: [] };
    // The look after this process's last section may have shown that other hosts wait.
    let mayBeFree = !line.admission.othersWait;
    for (;;) {
      wait.enough.throwIfAborted();
      const own = line.places.first;
      if (own !== undefined) {
        if (await this.#enter(line, own, call)) return;
        // It ended before it was renewed once: so may the next.
        if (own.wasTooShort) leaseWasOver(wait, resource);
        await wait.pacing.again();
        continue;
      }
      const result = mayBeFree ? await this.#takeWithoutPlace(line, call) : undefined;
      mayBeFree = false;
      if (result?.kind === "granted") {
        if (await call.handOut(result.granted)) return;
        continue;
      }
      wait.enough.throwIfAborted();
      // Callers whose sections have just ended may ask again at once. This lets them share the place.
      if (line.admission.upTo > 0) await this.#session.clock.sleep(0, wait.enough);
      try {
        await before(wait, line.draw());
        this.attend(line);
      } catch (error) {
        this.#waitOut(wait, error);
        await wait.pacing.again();
      }
    }
  }

  /** One try: nothing if anybody is ahead, and then no ticket is drawn. */
  async tryAcquire(line: FairLine, call: Call): Promise<Tried> {
    const { wait } = call;
    for (;;) {
      const result = await this.#takeWithoutPlace(line, call);
      if (result !== undefined) return result;
      wait.enough.throwIfAborted();
      await wait.pacing.again();
    }
  }

  /**
   * Whether the lease at the front, whose section has ended, goes on to the next caller of this process: where it is that
   * one's turn. A request only if no look has told so in the last `handOverMs`: those who mark the row have no place.
   */
  async mayPass(line: FairLine, own: OwnLease): Promise<boolean> {
    const isRecent = this.#session.clock.atMost() - line.lookedAt < own.lease.settings.handOverMs;
    if (line.admitsFirst ? isRecent : line.admission.othersWait) return line.admitsFirst;
    await this.#lookAgain(line, own);
    return line.admitsFirst;
  }

  /** Sees to it that callers behind the front get a place soon, where they may need one. */
  attend(line: FairLine): void {
    if (line.isAttended || line.unserved === undefined) return;
    line.isAttended = true;
    this.#session.detach(this.#attendTo(line));
  }

  /** An error here is not reported: the caller that leads meets it in its own requests. */
  async #attendTo(line: FairLine): Promise<void> {
    try {
      for (let { unserved } = line; unserved !== undefined; { unserved } = line) {
        const [own] = line.leases;
        if (line.leader !== undefined || own === undefined) {
          // The one at the front takes the lock, or a place for all.
          if (line.places.first === undefined && !line.isTaken) return;
          await this.#drawFor(line);
          continue;
        }
        const gatherMs = GATHER_MS - unserved.caller.wait.waitedMs;
        if (gatherMs > 0) {
          await this.#session.clock.sleep(Math.ceil(gatherMs), this.#session.closing);
          continue;
        }
        if (!line.admission.othersWait) await this.#lookAgain(line, own);
        if (line.unserved === unserved && line.leases.has(own)) await this.#drawFor(line);
      }
    } finally {
      // Before anything else: a caller that asks from here on starts this again.
      line.isAttended = false;
      line.tidy();
    }
  }

  /** Waits after a transient failure, and returns for another try: the callers behind the front send no requests themselves. */
  async #drawFor(line: FairLine): Promise<void> {
    try {
      await line.draw();
    } catch (error) {
      if (error === NOBODY_WAITS || line.unserved === undefined) return;
      if (!isTransient(error)) throw error;
      await this.#session.clock.sleep(LONGEST_PAUSE_MS, this.#session.closing);
    }
  }

  /** Looks, while this process has the lock, whose turn comes next. A failed look changes nothing. */
  async #lookAgain(line: FairLine, own: OwnLease): Promise<void> {
    const { settings } = own.resource;
    const { at, uuid } = own.lease.row;
    const asked = { kind: "read", attemptMs: attemptMs(settings.ttlMs) } as const;
    const look = await line
      .look((request) => sendOnce(this.#session, asked, request), { isConsistent: true })
      .catch(() => undefined);
    if (look === undefined || !line.leases.has(own)) return;
    const { admission } = look;
    const row = look.gate.find(({ sort }) => sort === at.sort);
    if (row?.uuid !== uuid) {
      // It was unlocked by force, say. Should its uuid have just changed, the next caller takes the row from the table.
      own.isClosed = true;
      return;
    }
    // A caller that was entitled to this lease before stays entitled.
    line.admission = { ...admission, upTo: Math.max(line.admission.upTo, admission.upTo) };
    // Callers without a place, of a mutex that is not fair or of a set, show only by their mark on the row.
    if (admission.othersWait || row.wanted === undefined) return;
    const contention = this.#session.contended();
    contention.sees(row);
    if (!contention.isTurnOver(at, settings.handOverMs)) return;
    line.admission = { upTo: 0, othersWait: false };
    contention.giveTurn(at, settings.poll.maxMs);
  }

  /** Takes the lock without a place, if nobody waits and it looks free. @returns undefined if no answer came in time. */
  async #takeWithoutPlace(line: FairLine, call: Call): Promise<Tried | undefined> {
    const { resource, once, wait } = call;
    const look = line.knownLookOf(wait) ?? (await line.look(wait.ask, { isConsistent: true }));
    const { gate, admission, sentAt } = look;
    wait.enough.throwIfAborted();
    const row = newest(gate);
    if (row !== undefined) wait.blocker.saw(row);
    line.admission = admission;
    if (admission.othersWait) {
      const tick = once && (await tickNow(this.#session, resource.at, once, wait));
      return { kind: (row && endedBy(row, tick, once)) ?? "held" };
    }
    // Only the claim can tell whether a tick is done.
    if (once === undefined && resource.kind.queue.room(resource, gate) === 0) return { kind: "held" };
    const until = (): number => Math.min(sentAt + LOOK_LASTS_MS, wait.until());
    return await this.#claim(line, call, { until, seen: gate, ahead: 0 });
  }

  /**
   * Waits until there is room for the own place after those before it, and takes the lock.
   * @returns whether it was delivered; false if the place was lost.
   */
  async #enter(line: FairLine, place: Place, call: Call): Promise<boolean> {
    const { resource, wait } = call;
    const { poll } = resource.settings;
    const session = this.#session;
    const { clock } = session;
    const pause = async (ms: number): Promise<void> => {
      await clock.sleep(Math.max(1, ms), wait.enough);
      wait.pacing.paused();
    };
    // What was seen just before the place was taken says how far it is to the front.
    const { seen } = line;
    const isRecent = seen !== undefined && clock.atMost() - seen.sentAt < SEEN_LASTS_MS;
    let recent = isRecent ? { ...seen, isConsistent: false } : undefined;
    for (let isConsistent = false; place.lost === undefined; ) {
      wait.enough.throwIfAborted();
      const look = recent ?? (await line.look(wait.ask, { isConsistent }));
      [recent, isConsistent] = [undefined, false];
      wait.enough.throwIfAborted();
      const { gate } = look;
      const room = resource.kind.queue.room(resource, gate);
      const ahead = line.ahead(look, place.ticket);
      if (ahead > 0 && ahead >= room) {
        const row = newest(gate);
        if (row !== undefined) wait.blocker.saw(row);
        line.blocked = undefined;
        await pause(line.pause(look, place.ticket, ahead));
        continue;
      }
      if (look.isConsistent && !look.places.some(({ uuid }) => uuid === place.uuid)) {
        place.lose();
        return false;
      }
      if (room === 0) {
        const ms = line.pace.next(poll);
        await this.#markWhenBlocked(line, call, gate);
        await pause(Math.min(ms, ...gate.map((row) => untilFree(session, { ...resource, at: row }, row))));
        // If the next look is soon, it is consistent: a claim may then follow it directly.
        isConsistent = ms < poll.maxMs / 2;
        continue;
      }
      if (!look.isConsistent) {
        isConsistent = true;
        continue;
      }
      line.admission = look.admission;
      const until = (): number => Math.min(look.sentAt + LOOK_LASTS_MS, place.until(), wait.until());
      const result = await this.#claim(line, call, { until, seen: gate, ahead });
      if (result?.kind === "granted" && (await call.handOut(result.granted))) return true;
      await wait.pacing.again();
    }
    return false;
  }

  /** It is this process's turn, and other hosts hold all of the lock's rows. After a while it marks one, as line without a place do. */
  async #markWhenBlocked(line: FairLine, { resource, wait }: Call, gate: readonly Row[]): Promise<void> {
    const session = this.#session;
    for (const row of gate) session.contended().waitsFor(row);
    const row = newest(gate);
    if (row === undefined) return;
    wait.blocker.saw(row);
    line.blocked ??= blockedFromNow(session);
    await mark(session, { ...resource, at: row }, { row, blocked: line.blocked, wait });
  }

  /** The ordinary claim. @returns undefined if no answer came while its look was valid. */
  async #claim(line: FairLine, { once, wait, claim }: Call, how: ClaimHow): Promise<Tried | undefined> {
    const onTaken = (): void => {
      line.isTaken = true;
      this.attend(line);
    };
    try {
      return await tryClaim(this.#session, wait, () => claim({ ...how, onTaken }));
    } catch (error) {
      this.#waitOut(wait, error);
      // A claim for a tick is not repeated: the next could find the tick granted to this one, for which nothing runs.
      if (once !== undefined) throw error;
      return undefined;
    } finally {
      line.isTaken = false;
    }
  }

  /** Returns where an outage is waited out. @throws what ended the wait; the failure, where trying again is of no use. */
  #waitOut(wait: Wait, error: unknown): void {
    wait.enough.throwIfAborted();
    if (!isTransient(error) || this.#session.clock.atMost() >= wait.until()) throw error;
  }
}

/** Waits for what others of this process wait for as well. @throws what ended this wait. */
async function before<T>({ enough }: Wait, shared: Promise<T>): Promise<T> {
  return await new Promise<T>((resolve, reject) => {
    const stop = onAbort(enough, () => reject(enough.reason));
    shared.finally(stop).then(resolve, reject);
  });
}
