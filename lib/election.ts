/// <reference lib="esnext.disposable" preserve="true" />
import { type InspectOptions, inspect } from "node:util";
import { type Diagnostics, publish } from "./diagnostics.js";
import { findLockLost, LockError } from "./errors.js";
import type { Lock, LockJson, TransferableLock } from "./lock.js";
import type { LockInfo } from "./lock-info.js";
import type { ObserveOptions } from "./options/calls.js";
import { follow } from "./session/abort-listening.js";
import type { Session } from "./session/session.js";
import { SHOWN, shownAs } from "./shown.js";

/**
 * The pauses between two campaigns double from the first to the longest. The first is longer than the default polls, so that
 * another candidate gets its turn if `lead` fails at once.
 */
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 30_000;

const nothing = (): void => undefined;

/** What an election is made of. */
interface Parts<Held> {
  readonly session: Session;
  readonly name: string;
  /** Waits for the lock, runs `led` under it, and releases it; `ends` ends the wait, and aborts `lock.signal`. */
  readonly campaign: (led: (lock: Held) => Promise<void>, ends: AbortSignal) => Promise<void>;
  readonly observe: (options?: ObserveOptions) => AsyncIterableIterator<LockInfo | null>;
  /** A method and not a property, so that its parameter is bivariant: a mutex of fenced locks must also be one of locks. */
  lead(lock: Held): unknown;
  readonly signal: AbortSignal | undefined;
}

/** One campaign, and the leadership that it led to, if any. */
interface Term {
  /** Undefined as long as `lead` has not begun. */
  lock: Lock | undefined;
  /** How long `lead` ran, in ms. */
  ledMs: number;
  /**
   * - `returned`: `lead` has returned, and the lock was held until then.
   * - `ended`: the campaign or `lead` had to end: the lock was lost, or the election ended.
   * - `failed`: the campaign or `lead` has failed by an error of its own.
   */
  outcome: "returned" | "ended" | "failed";
  /** The loss, or the error. */
  cause: unknown;
}

/**
 * A candidacy for leader, made by {@link Mutex.elect}. It runs by itself:
 *
 * 1. Wait for the lock. A campaign that fails goes on with 4.
 * 2. Run `lead`. Whatever happens to the lock, wait until `lead` has ended.
 * 3. Release the lock. If `lead` has returned and the lock was held until then, the election is over.
 * 4. Pause, longer each time; after a leadership of 30 s, the pause is short again. Go on with 1.
 *
 * `resign()`, the `signal` of the options and the close of the table end the election at any of these steps. A wait and a pause end
 * at once. `lock.signal` tells a leader to end; its leadership is over when `lead` has ended.
 *
 * @typeParam Held the type of the lock: {@link FencedLock} with `fencing: true`.
 */
export class Election<Held extends Lock = TransferableLock> implements AsyncDisposable {
  readonly name: string;
  /**
   * Settles when the election is over and `lead` has ended. It resolves if `lead` has returned as leader, and after `resign()`
   * or the abort of `signal`. It rejects with the code `LOCK_CLOSED`, and with nothing else, if the table was closed before.
   * You do not have to handle that rejection.
   */
  readonly done: Promise<void>;
  readonly #parts: Parts<Held>;
  readonly #end = new AbortController();
  #lock: Held | undefined;

  /** @internal Made by `Mutex.elect()`. */
  constructor(parts: Parts<Held>) {
    this.name = parts.name;
    this.#parts = parts;
    this.done = this.#run();
    this.done.catch(nothing);
  }

  /** The lock, from the beginning of `lead` to its end. It may have been lost: `held` tells. Undefined otherwise. */
  get lock(): Held | undefined {
    return this.#lock;
  }

  /** Whether `lead` runs and the lock is held, at this moment. */
  get isLeader(): boolean {
    return this.#lock?.held ?? false;
  }

  /**
   * Whether `lead` runs and another candidate has waited for `handOverMs`: see {@link Lock.wanted}. A leader that returns then ends
   * its candidacy; to stay a candidate it calls `elect()` again, which leaves the lock to the others first.
   */
  get wanted(): boolean {
    return this.#lock?.wanted ?? false;
  }

  /**
   * Ends the candidacy: a campaign at once; a leadership by the abort of `lock.signal`, with an error of the code `LOCK_RESIGNED`,
   * which is no loss. The lock is held and renewed until `lead` has ended, and released then. Do not await it inside of `lead`: it
   * waits for the end of `lead`. Return instead.
   *
   * @returns when the election is over. It never rejects.
   *
   * @example
   * process.on("SIGTERM", async () => {
   *   await election.resign();
   *   await locks.close();
   * });
   */
  async resign(): Promise<void> {
    const message = `The candidate for ${JSON.stringify(this.name)} resigns: \`lead\` has to end`;
    this.#end.abort(new LockError("LOCK_RESIGNED", message));
    await this.done.catch(nothing);
  }

  /** Yields the leader as {@link Mutex.observe} does: it goes on when this candidacy ends. */
  observe(options?: ObserveOptions): AsyncIterableIterator<LockInfo | null> {
    return this.#parts.observe(options);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.resign();
  }

  /** What `JSON.stringify()` writes, and what `console.log()` shows. */
  toJSON(): { readonly name: string; readonly isLeader: boolean; readonly lock: LockJson | undefined } {
    return { name: this.name, isLeader: this.isLeader, lock: this.lock?.toJSON() };
  }

  /** @internal */
  [SHOWN](_depth: number, options: InspectOptions): string {
    return shownAs("Election", this.toJSON(), options);
  }

  async #run(): Promise<void> {
    const { session, signal } = this.#parts;
    const stop = follow([session.closing, signal], (reason) => this.#end.abort(reason));
    await this.#campaigns();
    stop();
    // A close is reported in the same way to a leader and to a candidate that waits.
    const { reason } = session.closing;
    const isClosed = reason !== undefined && this.#end.signal.reason === reason;
    this.#tell("over", isClosed ? { cause: reason } : {});
    if (isClosed) throw reason;
  }

  /** Runs one campaign after the other. Never rejects: `elect()` has refused what no further campaign could make better. */
  async #campaigns(): Promise<void> {
    const { clock, random } = this.#parts.session;
    const ends = this.#end.signal;
    for (let pauses = 0; !ends.aborted; ) {
      this.#tell("campaigning");
      const term = await this.#term();
      const isLast = ends.aborted || term.outcome === "returned";
      pauses = term.ledMs >= LONGEST_PAUSE_MS ? 1 : pauses + 1;
      const pauseMs = isLast ? undefined : pauseBefore(pauses, random());
      this.#ended(term, pauseMs);
      if (pauseMs === undefined) return;
      await clock.sleep(pauseMs, ends).catch(nothing);
    }
  }

  /** Waits for the lock, and leads. Never rejects. */
  async #term(): Promise<Term> {
    const { campaign, lead, session } = this.#parts;
    const ends = this.#end.signal;
    const term: Term = { lock: undefined, ledMs: 0, outcome: "ended", cause: undefined };
    const led = async (lock: Held): Promise<void> => {
      // The end may have come between the grant and this moment.
      if (ends.aborted) return;
      const since = session.clock.atLeast();
      term.lock = lock;
      this.#lock = lock;
      this.#tell("leading", { uuid: lock.uuid });
      try {
        await lead(lock);
      } catch (error) {
        if (!isObedience(error, lock.signal)) Object.assign(term, { outcome: "failed", cause: error });
        throw error;
      } finally {
        this.#lock = undefined;
        term.ledMs = session.clock.atLeast() - since;
      }
    };
    const rejected = await campaign(led, ends).then(
      () => undefined,
      (error: unknown) => ({ error }),
    );
    if (term.outcome === "failed") return term;
    if (term.lock === undefined) {
      return rejected === undefined || ends.aborted ? term : { ...term, outcome: "failed", cause: rejected.error };
    }
    const { signal } = term.lock;
    const hasReturned = rejected === undefined && !signal.aborted;
    const cause = findLockLost(signal.aborted ? signal.reason : rejected?.error);
    return { ...term, outcome: hasReturned ? "returned" : "ended", cause };
  }

  /** Publishes how a term has ended. A failure is also a process warning: it would be silent otherwise. */
  #ended({ lock, outcome, cause }: Term, pauseMs: number | undefined): void {
    const uuid = lock?.uuid;
    if (uuid !== undefined) this.#tell("stopped", { uuid, cause, pauseMs });
    else if (outcome === "failed") this.#tell("failed", { cause, pauseMs });
    if (outcome !== "failed") return;
    const what = uuid === undefined ? "a campaign" : "`lead`";
    const next = pauseMs === undefined ? "it was the last" : `the next campaign begins in ${Math.round(pauseMs)} ms`;
    const because = cause instanceof Error ? cause.message : inspect(cause);
    const detail = cause instanceof Error ? { detail: cause.stack ?? because } : {};
    const message = `Election ${JSON.stringify(this.name)}: ${what} has failed, ${next}: ${because}`;
    process.emitWarning(message, { type: "DynamutexWarning", ...detail });
  }

  #tell(event: Told["event"], { uuid, cause, pauseMs }: Partial<Told> = {}): void {
    const { owner } = this.#parts.session;
    publish("dynamutex:election", { name: this.name, owner, event, uuid, cause, pauseMs });
  }
}

type Told = Diagnostics["dynamutex:election"];

/**
 * Whether `lead` has ended as this signal told it to: with the signal's reason, with a loss, or with an `AbortError` of the
 * platform.
 */
function isObedience(error: unknown, signal: AbortSignal): boolean {
  if (!signal.aborted) return false;
  if (error === signal.reason || findLockLost(error) !== undefined) return true;
  const { name, cause } = Object(error) as { readonly name?: unknown; readonly cause?: unknown };
  return name === "AbortError" || cause === signal.reason;
}

/**
 * The pause in ms before the next campaign, from half to all of its length. @param pauses how many pauses have come in a row,
 * with this one.
 */
function pauseBefore(pauses: number, random: number): number {
  return Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (pauses - 1)) * (0.5 + random / 2);
}
