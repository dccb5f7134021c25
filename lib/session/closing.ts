import type { LockLostError } from "../errors.js";
import type { Clock } from "../time/clock.js";

/** How long sections may run on if `close()` does not say. */
const DRAIN_MS = 10_000;

/** How long a close that was given no time waits for a section before that is told: a forgotten `unlock()` never ends one. */
const TOLD_AFTER_MS = 5_000;

/** How long a close that was called inside of a section waits for one before that is told: a section that does not await it ends. */
const TOLD_INSIDE_AFTER_MS = 100;

/** A lease that a closing table has to end. */
export interface Closeable {
  readonly row: { readonly at: { readonly name: string } };
  /** Whether a section runs on it, even one that has lost it. */
  readonly hasSections: boolean;
  /** The table has closed: a lease without a section gets no other, and is released. */
  endIfIdle(): void;
  /** The drain is over. @returns the loss of the section that runs on it; its row stays until that section ends. */
  revoke(): LockLostError | undefined;
}

/** What a closing table waits for. */
interface Remaining {
  readonly leases: ReadonlySet<Closeable>;
  /** How much goes on in the background. */
  readonly background: () => number;
  /** The longest time for which a release of this process is retried. */
  readonly longestReleaseMs: () => number;
}

/**
 * Closes a table in this process, within one bound for the whole. Waiting calls have ended before.
 *
 * 1. Leases without a section are released at once.
 * 2. Sections run on, and are renewed, until the drain is over. Then the remaining ones are revoked: they lose their locks, and
 *    nobody else gets these locks before the sections end, or their leases do.
 * 3. What is left has as long as the longest release: revoked sections wind down, and rows that were taken for nobody are removed.
 *
 * It ends as soon as nothing is left. Moments are on `atLeast`: a wall clock that is set forward shortens nothing.
 */
export class Closing {
  readonly #clock: Clock;
  readonly #remaining: Remaining;
  readonly #onSettled: () => void;
  #drainEnds = Number.POSITIVE_INFINITY;
  #closed: Promise<void> | undefined;
  /** Ends the pause early: nothing is left, or the drain was shortened. */
  #pause: AbortController | undefined;
  #isSettled = false;
  /** Whether no caller has said how long sections may run on. */
  #isDefault = true;
  /** Whether a section has called it and still ran a moment later: it may wait for itself. */
  #waitsForItself = false;
  #cancelTold: (() => void) | undefined;

  /** @param onSettled is called once, when nothing is left. */
  constructor(clock: Clock, remaining: Remaining, onSettled: () => void) {
    this.#clock = clock;
    this.#remaining = remaining;
    this.#onSettled = onSettled;
  }

  /** How much time is left until the bound of the whole close. */
  get remainingMs(): number {
    return this.#drainEnds + this.#remaining.longestReleaseMs() - this.#clock.atLeast();
  }

  /**
   * @param drainMs how long sections may run on. Default 10 s at the first call; a further call without it changes nothing. A
   * further call with less time than is left shortens the drain for all.
   * @param caller.isInside whether it is called inside of a section of this table.
   * @throws AggregateError with the loss of each lock that was revoked.
   */
  close(drainMs: number | undefined, { isInside = false }: { readonly isInside?: boolean } = {}): Promise<void> {
    const ms = drainMs ?? (this.#closed === undefined ? DRAIN_MS : Number.POSITIVE_INFINITY);
    this.#isDefault &&= drainMs === undefined;
    this.#drainEnds = Math.min(this.#drainEnds, this.#clock.atLeast() + ms);
    this.#pause?.abort();
    if (isInside) this.#cancelTold ??= this.#clock.alarm(TOLD_INSIDE_AFTER_MS, () => this.#tellInside());
    this.#closed ??= this.#close();
    return this.#closed;
  }

  /** Called when a lease or background work has ended: checks whether anything is left. */
  checkSettled(): void {
    const { leases, background } = this.#remaining;
    if (this.#isSettled || leases.size + background() > 0) return;
    this.#isSettled = true;
    this.#cancelTold?.();
    this.#pause?.abort();
    this.#onSettled();
  }

  async #close(): Promise<void> {
    const { leases } = this.#remaining;
    for (const lease of [...leases]) lease.endIfIdle();
    this.checkSettled();
    const drainLeftMs = (): number => this.#drainEnds - this.#clock.atLeast();
    if (this.#isDefault) await this.#pauseWhile(() => drainLeftMs() - (DRAIN_MS - TOLD_AFTER_MS));
    if (this.#isDefault) this.#tell();
    await this.#pauseWhile(drainLeftMs);
    const revoked = [...leases].flatMap((lease) => lease.revoke() ?? []);
    await this.#pauseWhile(() => this.remainingMs);
    if (revoked.length === 0) return;
    throw new AggregateError(revoked, message(revoked, this.#waitsForItself));
  }

  /** Tells that the close waits for a section, and what to do. */
  #tell(): void {
    const [first, ...others] = this.#remaining.leases;
    if (first === undefined || this.#waitsForItself) return;
    this.#warn(
      `close() has waited for ${TOLD_AFTER_MS / 1_000} s for ${namesOf(first.row.at.name, others)} to be unlocked, and revokes ` +
        `what is left after ${DRAIN_MS / 1_000} s. ${REMEDY}`,
    );
  }

  /** Tells that the close waits for the section that has called it, unless all sections have ended. */
  #tellInside(): void {
    const [first, ...others] = [...this.#remaining.leases].filter(({ hasSections }) => hasSections);
    if (first === undefined) return;
    this.#waitsForItself = true;
    this.#warn(
      `close() was called inside of a section, and waits for ${namesOf(first.row.at.name, others)} to be unlocked. If the ` +
        `section awaits close(), each waits for the other until the lock is revoked and close() gives up. ${REMEDY_INSIDE}`,
    );
  }

  #warn(text: string): void {
    // A clock without `stay` is set by hand, in a test: some seconds on it are no reason for a warning.
    if (this.#clock.stay !== undefined) process.emitWarning(text, "DynamutexWarning");
  }

  /** Sleeps while something is left to wait for, and there is time. Keeps the process alive meanwhile. */
  async #pauseWhile(leftMs: () => number): Promise<void> {
    while (!this.#isSettled && leftMs() > 0) {
      this.#pause = new AbortController();
      await this.#clock.sleep(Math.ceil(leftMs()), this.#pause.signal).catch(() => undefined);
    }
  }
}

/** What ends a lock, where it may have been forgotten. */
export const HOW_TO_UNLOCK = "`await using lock = …`, `await lock.unlock()` or `mutex.run()`";

const REMEDY =
  `Unlock every lock, by ${HOW_TO_UNLOCK}, before its section awaits close(); end sections when lock.signal aborts, or set a ` +
  "longer drainMs";

const REMEDY_INSIDE = "Call close() after the section has ended, or do not await it there";

/** Names one lock, since a forgotten `unlock()` is as likely as a slow section. */
function namesOf(first: string | undefined, others: readonly unknown[]): string {
  return `lock ${JSON.stringify(first)}${others.length === 0 ? "" : ` and ${others.length} more`}`;
}

function message([first, ...others]: readonly LockLostError[], waitedForItself: boolean): string {
  const names = namesOf(first?.lockName, others).replace(/^l/, "L");
  const were = others.length === 0 ? "was" : "were";
  const revoked = `${names} ${were} revoked: the section had not ended when the drain was over`;
  return waitedForItself
    ? `${revoked}, and close() was called inside of a section. ${REMEDY_INSIDE}`
    : `${revoked}. ${REMEDY}`;
}
