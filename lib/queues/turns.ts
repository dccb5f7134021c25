import type { Resource, Tenure } from "../kinds/kind.js";
import type { MutexSettings } from "../options/mutex.js";
import type { Address } from "../protocol/addresses.js";
import type { Row } from "../protocol/row.js";
import type { OthersTurn } from "../session/contention.js";
import { firstTimeoutMs, type SentOnce, sendOnce } from "../session/requests.js";
import { rowsOf, type Session } from "../session/session.js";
import type { Bid } from "../taking/bid.js";

/**
 * How a process shares a lock that is not fair with other hosts. It learns of their marks, whatever its sections ask for: the
 * reply to each release shows the row as it was, and while a lease is passed on instead of released, the row is read every
 * `handOverMs`. After its turn (see `session/contention.ts`) this process releases the lease and stands back for a moment.
 */
export class Turns {
  readonly #session: Session;

  constructor(session: Session) {
    this.#session = session;
  }

  /**
   * Waits until other hosts have had their turn. One look checks whether any of them has taken the lock.
   * @throws what ended the call.
   */
  async standBack(resource: Resource, bid: Bid): Promise<void> {
    // A release that is answered late begins another turn of theirs.
    for (let others = this.#othersTurnOf(resource); others !== undefined; others = this.#othersTurnOf(resource)) {
      bid.waits(this.whyStandBack(resource));
      await this.#standBackFor(others, resource.settings, bid);
      bid.tries();
    }
  }

  async #standBackFor({ at, lookAt, until }: OthersTurn, settings: MutexSettings, bid: Bid): Promise<void> {
    const { clock, owner } = this.#session;
    const contention = this.#session.contended();
    const { withdrawn: endSignal } = bid;
    const lookInMs = lookAt - clock.atLeast();
    if (lookInMs > 0) {
      await clock.sleep(lookInMs, endSignal);
      const look = await bid.call.inContext(() => this.#look(at, settings, { endSignal }));
      const row = look?.row;
      // A row with the owner of this process and without a uuid was left by its own release.
      if (row !== undefined && (row.uuid !== undefined || row.owner !== owner)) contention.waitsFor(row);
      else if (look !== undefined) contention.nobodyCame(at);
    }
    const restMs = until - clock.atLeast();
    if (restMs > 0) await clock.sleep(restMs, endSignal);
  }

  #othersTurnOf({ at }: Resource): OthersTurn | undefined {
    return this.#session.contention?.othersTurnOf(at);
  }

  /** Why a call of this process does not ask for the lock at present, for its error. */
  whyStandBack(resource: Resource): string | undefined {
    const othersTurn = this.#othersTurnOf(resource);
    if (othersTurn === undefined) return undefined;
    const ms = Math.ceil(othersTurn.until - this.#session.clock.atLeast());
    return `A caller of another process has waited for it, and this process lets it go first, for up to ${ms} ms more`;
  }

  /**
   * Whether a lease whose section has ended may pass to the next caller of this process. The row is read for marks every
   * `handOverMs`: half a read unit, and nothing where no lease is passed on.
   * @param until how long the answer is waited for, on `atMost`.
   */
  async mayPass(own: Tenure, until: number): Promise<boolean> {
    const { row, settings } = own.lease;
    const now = this.#session.clock.atLeast();
    if (now - own.lookedAt >= settings.handOverMs && !this.isTurnOver(own)) {
      // Others may have marked any of several rows: the answers to their releases tell, at no further cost.
      if (row.others !== undefined) return false;
      own.lookedAt = now;
      const seen = (await this.#look(row.at, settings, { until: () => until }))?.row;
      if (seen?.wanted !== undefined) this.#session.contended().sees(seen);
      // The lock was unlocked by force, so somebody wants it.
      if (seen !== undefined && seen.uuid === undefined) own.close();
    }
    return !this.isTurnOver(own);
  }

  /** Whether this process, which has the row, must let other hosts in. If the lock is fair, the queue decides that instead. */
  isTurnOver({ lease, resource, isOpen }: Tenure): boolean {
    if (lease.settings.fair || resource.kind.sectionsShareLease) return false;
    return !isOpen || lease.turnLeftMs <= 0;
  }

  /** The lease was released: if its turn is over, this process stands back. */
  end(own: Tenure): void {
    const { row, settings } = own.lease;
    if (!this.isTurnOver(own)) return;
    const contention = this.#session.contended();
    const over = rowsOf(row).filter(({ at }) => contention.isTurnOver(at, settings.handOverMs));
    for (const { at } of over.length > 0 ? over : [row]) contention.giveTurn(at, settings.poll.maxMs);
  }

  /**
   * Reads the row, eventually consistent: half a read unit. @returns undefined if the read fails. The failure is ignored: if
   * the table is out of reach, other requests find out.
   */
  async #look(
    at: Address,
    { ttlMs }: MutexSettings,
    bounds: Pick<SentOnce, "endSignal" | "until">,
  ): Promise<{ readonly row: Row | undefined } | undefined> {
    const { store } = this.#session;
    const request = { kind: "read", firstTimeoutMs: firstTimeoutMs(ttlMs), ...bounds } as const;
    const look = sendOnce(this.#session, request, (signal) => store.read(at, { consistent: false }, signal));
    return await look.then(
      (row) => ({ row }),
      () => undefined,
    );
  }
}
