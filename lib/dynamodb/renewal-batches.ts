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

/** A renewal of a row with more data than this goes alone: the reply to a batch has each row whole. */
const LARGE_BYTES = 10 * 1_024;

/** How many large rows are remembered. */
const MOST_LARGE = 1_000;

/**
 * A renewal without an answer in a batch is sent again in a batch that is smaller by this factor: after two such batches, it is
 * alone.
 */
const AGAIN_SHARE = 4;

/** How renewals are sent. */
export interface RenewalSender {
  one(renewal: Renew, signal: AbortSignal): Promise<WriteOutcome>;
  /**
   * Sends renewals of different rows in one request. @returns the outcome of each, in their order: the error of one is an
   * outcome here as well.
   * @param signals for a further request that one of the renewals needs: no other renewal waits for that.
   * @throws {@link LockStoreError} if the request fails for all of them.
   */
  all(
    renewals: readonly Renew[],
    signal: AbortSignal,
    signals: readonly AbortSignal[],
  ): Promise<readonly (WriteOutcome | Promise<WriteOutcome> | LockStoreError)[]>;
}

/** A renewal that waits for the others of its microtask, or for the answer to its batch. */
interface Member {
  readonly renewal: Renew;
  readonly signal: AbortSignal;
  readonly settle: (outcome: WriteOutcome | Promise<WriteOutcome>) => void;
  readonly fail: (error: unknown) => void;
}

/**
 * Sends renewals that leave in the same microtask together, in one request of up to {@link MOST} statements. It is a way of sending
 * and nothing more: each renewal has an outcome of its own, and its caller does not learn how it was sent.
 *
 * 1. All renewals that are asked for until the next microtask leave together. A batch has no row twice: DynamoDB would refuse the
 *    whole batch.
 * 2. Each member gives up by itself when its time is over. The request is aborted when all of them have.
 * 3. The batch size doubles from one with each answer: a new engine takes a second for its first 25. Renewals without an answer
 *    go again in batches of a quarter of the size, so that what holds up one row does not hold up the others for long.
 * 4. Where batches cannot be used, renewals go one by one from then on, including those of the batch that was refused for it.
 */
export class RenewalBatches {
  readonly #sender: RenewalSender;
  /** The keys of the rows that are known to be large. */
  readonly #large = new BoundedMap<string, true>(MOST_LARGE);
  /**
   * The batch size for a renewal that got no answer in a batch: what holds up one of its rows must not hold up the others for long.
   */
  readonly #mostAgain = new WeakMap<Renew, number>();
  #pending: Member[] = [];
  #most = 1;
  #isUsable = true;

  constructor(sender: RenewalSender) {
    this.#sender = sender;
  }

  /** Learns how large the data on a row is; 0 if there is none any more. */
  note(at: Address, bytes = 0): void {
    const key = rowKey(at);
    if (bytes > LARGE_BYTES) this.#large.set(key, true);
    else this.#large.delete(key);
  }

  write(renewal: Renew, signal: AbortSignal): Promise<WriteOutcome> {
    if (!this.#isUsable || this.#large.has(rowKey(renewal.at))) return this.#sender.one(renewal, signal);
    return new Promise((settle, fail) => {
      // Not by queueMicrotask(), which a test's fake timers hold back.
      if (this.#pending.length === 0) void Promise.resolve().then(() => this.#sendPending());
      this.#pending.push({ renewal, signal, settle, fail });
    });
  }

  #sendPending(): void {
    const pending = this.#pending;
    this.#pending = [];
    let batch = new Batch();
    for (const member of pending) {
      const most = this.#mostAgain.get(member.renewal) ?? this.#most;
      if (member.signal.aborted) member.fail(member.signal.reason);
      else if (!batch.add(member, most)) {
        void this.#send(batch.members);
        batch = new Batch();
        batch.add(member, most);
      }
    }
    void this.#send(batch.members);
  }

  async #send(batch: readonly Member[]): Promise<void> {
    const [only] = batch;
    if (only === undefined) return;
    if (batch.length === 1) {
      const answer = this.#sender.one(only.renewal, only.signal);
      only.settle(answer);
      return await answer.then(
        () => this.#answered(1),
        () => undefined,
      );
    }
    const signals = batch.map(({ signal }) => signal);
    const request = abortedWithAll(signals);
    try {
      const renewals = batch.map(({ renewal }) => renewal);
      const outcomes = await this.#sender.all(renewals, request.signal, signals);
      this.#answered(batch.length);
      for (const [index, member] of batch.entries()) this.#settle(member, outcomes[index]);
    } catch (error) {
      const mostAgain = Math.max(1, Math.floor(batch.length / AGAIN_SHARE));
      for (const { renewal } of batch) this.#mostAgain.set(renewal, mostAgain);
      for (const member of batch) this.#settle(member, error);
    } finally {
      request.end();
    }
  }

  /** A request with this many renewals was answered: twice as many may go together. */
  #answered(count: number): void {
    this.#most = Math.min(MOST, Math.max(this.#most, 2 * count));
  }

  #settle(member: Member, outcome: unknown): void {
    if (!(outcome instanceof Error)) member.settle(outcome as WriteOutcome | Promise<WriteOutcome>);
    else if (!(outcome instanceof LockStoreError && lacksBatches(outcome))) member.fail(outcome);
    else {
      if (this.#isUsable) publish("dynamutex:one-by-one", { cause: outcome });
      this.#isUsable = false;
      // It was not applied, and its caller still waits for it.
      if (member.signal.aborted) member.fail(outcome);
      else member.settle(this.#sender.one(member.renewal, member.signal));
    }
  }
}

/** The renewals of one request, as they are put together. */
class Batch {
  readonly members: Member[] = [];
  readonly #keys = new Set<string>();
  #most = MOST;

  /**
   * @param most the size of the largest batch that this member may be in.
   * @returns false if the member has to go in another batch; never for the first.
   */
  add(member: Member, most: number): boolean {
    const key = rowKey(member.renewal.at);
    this.#most = Math.min(this.#most, most);
    if (this.members.length >= this.#most || this.#keys.has(key)) return false;
    this.members.push(member);
    this.#keys.add(key);
    return true;
  }
}

/** A signal that aborts when the last of these signals has aborted. */
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

const rowKey = ({ name, sort }: Address): string => `${sort}/${name}`;
