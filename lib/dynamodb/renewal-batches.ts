import { publish } from "../diagnostics.js";
import { LockStoreError } from "../errors.js";
import type { Address } from "../protocol/addresses.js";
import type { Renew } from "../protocol/writes.js";
import { onAbort } from "../session/abort-listening.js";
import { BoundedMap } from "../session/bounded-map.js";
import type { WriteOutcome } from "../store.js";
import { lacksBatches } from "./failures.js";

/** How many statements DynamoDB takes in one request. */
const MOST = 25;

/** A batch is about no more than so many bytes of rows, as far as their sizes are known: each row comes back whole. */
const MOST_BYTES = 256 * 1_024;

/** Rows below this size fill no batch, whatever is in it. */
const LARGE_BYTES = MOST_BYTES / MOST;

/** Of how many large rows the sizes are remembered. */
const MOST_LARGE = 1_000;

/** An answer is slow that takes so much longer than the quickest of late. A cold engine takes a second for a full batch. */
const SLOW_MS = 250;

/** With each answer the quickest one counts for more ms by this factor, so that a table far away is not slow for ever. */
const FORGETTING = 1.05;

/** What got no answer in a batch goes again in batches that are smaller by this factor: after two of them, each is alone. */
const AGAIN_SHARE = 4;

/** How renewals are sent. */
export interface RenewalSender {
  one(renewal: Renew, signal: AbortSignal): Promise<WriteOutcome>;
  /**
   * In one request, each of another row. What came of each, in their order: one that failed is an outcome here as well.
   * @param signals for what one of them needs beyond the request: nobody else waits for that.
   * @throws {@link LockStoreError} for all of them.
   */
  all(
    renewals: readonly Renew[],
    signal: AbortSignal,
    signals: readonly AbortSignal[],
  ): Promise<readonly (WriteOutcome | Promise<WriteOutcome> | LockStoreError)[]>;
  /** A stopwatch, in ms. */
  now(): number;
}

/** A renewal that waits for the others of its turn, or for the answer to its batch. */
interface Member {
  readonly renewal: Renew;
  readonly signal: AbortSignal;
  readonly settle: (outcome: WriteOutcome | Promise<WriteOutcome>) => void;
  readonly fail: (error: unknown) => void;
}

/**
 * Sends renewals that leave in the same turn together, in one request of up to {@link MOST} statements. It is a way of sending
 * and nothing more: each renewal has an outcome of its own, and whoever asked for it does not learn how it was sent.
 *
 * 1. What is asked for until the next microtask is one turn. A batch has no row twice, which DynamoDB would refuse whole.
 * 2. Each member gives up by itself when its time is over. The request is aborted when all of them have.
 * 3. How many go together doubles after a quick answer, and halves after a slow one or none, from one on. What got no answer
 *    goes again with a quarter of them.
 * 4. Where batches cannot be used, renewals go one by one from then on, those of a batch that was refused for it included.
 */
export class RenewalBatches {
  readonly #sender: RenewalSender;
  /** The bytes of the rows that are known to be large, by key. */
  readonly #large = new BoundedMap<string, number>(MOST_LARGE);
  /** With how many a renewal goes that got no answer in a batch: what holds up one of its rows must not hold up the others for long. */
  readonly #mostAgain = new WeakMap<Renew, number>();
  #turn: Member[] = [];
  #most = 1;
  #quickestMs = 0;
  #isUsable = true;

  constructor(sender: RenewalSender) {
    this.#sender = sender;
  }

  /** Learns how large the data on a row is; undefined where there is none any more. */
  note(at: Address, bytes = 0): void {
    const key = keyOf(at);
    if (bytes > LARGE_BYTES) this.#large.set(key, bytes);
    else this.#large.delete(key);
  }

  write(renewal: Renew, signal: AbortSignal): Promise<WriteOutcome> {
    if (!this.#isUsable) return this.#sender.one(renewal, signal);
    return new Promise((settle, fail) => {
      // Not by queueMicrotask(), which fake timers of a test hold back.
      if (this.#turn.length === 0) void Promise.resolve().then(() => this.#leave());
      this.#turn.push({ renewal, signal, settle, fail });
    });
  }

  #leave(): void {
    const turn = this.#turn;
    this.#turn = [];
    const batches: Member[][] = [];
    let keys = new Set<string>();
    let [bytes, most] = [0, 0];
    for (const member of turn) {
      if (member.signal.aborted) {
        member.fail(member.signal.reason);
        continue;
      }
      const key = keyOf(member.renewal.at);
      const size = this.#large.get(key) ?? 0;
      const mostWithIt = Math.min(this.#most, this.#mostAgain.get(member.renewal) ?? MOST);
      const last = batches.at(-1);
      const fits = last !== undefined && last.length < Math.min(most, mostWithIt) && bytes + size <= MOST_BYTES;
      if (fits && !keys.has(key)) {
        last.push(member);
        keys.add(key);
        bytes += size;
        most = Math.min(most, mostWithIt);
      } else {
        batches.push([member]);
        keys = new Set([key]);
        [bytes, most] = [size, mostWithIt];
      }
    }
    for (const batch of batches) void this.#send(batch);
  }

  async #send(batch: readonly Member[]): Promise<void> {
    const leftAt = this.#sender.now();
    const [only] = batch;
    if (only !== undefined && batch.length === 1) {
      const answer = this.#sender.one(only.renewal, only.signal);
      only.settle(answer);
      await answer.then(
        () => this.#took(1, this.#sender.now() - leftAt),
        () => undefined,
      );
      return;
    }
    const signals = batch.map(({ signal }) => signal);
    const request = abortedWithAll(signals);
    try {
      const outcomes = await this.#sender.all(
        batch.map(({ renewal }) => renewal),
        request.signal,
        signals,
      );
      this.#took(batch.length, this.#sender.now() - leftAt);
      for (const [index, member] of batch.entries()) this.#settle(member, outcomes[index]);
    } catch (error) {
      this.#took(batch.length, undefined);
      const mostAgain = Math.max(1, Math.floor(batch.length / AGAIN_SHARE));
      for (const { renewal } of batch) this.#mostAgain.set(renewal, mostAgain);
      for (const member of batch) this.#settle(member, error);
    } finally {
      request.end();
    }
  }

  #settle(member: Member, outcome: unknown): void {
    if (!(outcome instanceof Error)) member.settle(outcome as WriteOutcome | Promise<WriteOutcome>);
    else if (!(outcome instanceof LockStoreError && lacksBatches(outcome))) member.fail(outcome);
    else {
      if (this.#isUsable) publish("dynamutex:one-by-one", { cause: outcome });
      this.#isUsable = false;
      // It was not applied, and is still under way for whoever asked for it.
      if (member.signal.aborted) member.fail(outcome);
      else member.settle(this.#sender.one(member.renewal, member.signal));
    }
  }

  /** So many in a request took so long, or were not answered. It says something about as many, and nothing about more. */
  #took(count: number, ms: number | undefined): void {
    if (ms !== undefined) this.#quickestMs = Math.min(ms, FORGETTING * this.#quickestMs + 1);
    const isQuick = ms !== undefined && ms <= this.#quickestMs + SLOW_MS;
    if (isQuick) this.#most = Math.min(MOST, Math.max(this.#most, 2 * count));
    else this.#most = Math.min(this.#most, Math.max(1, Math.floor(count / 2)));
  }
}

const keyOf = ({ name, sort }: Address): string => `${sort}/${name}`;

/** A signal that aborts when the last of these has. */
function abortedWithAll(signals: readonly AbortSignal[]): { readonly signal: AbortSignal; end(): void } {
  const all = new AbortController();
  let open = signals.length;
  const stops = signals.map((signal) =>
    onAbort(signal, () => {
      open -= 1;
      if (open === 0) all.abort(signal.reason);
    }),
  );
  return { signal: all.signal, end: () => stops.forEach((stop) => void stop()) };
}
