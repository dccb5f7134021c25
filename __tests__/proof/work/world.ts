import { MemoryTable } from "../../../lib/testing/memory-table.js";
import { type Clock, sleepUntilRung } from "../../../lib/time/clock.js";
import type { Answer, Message } from "../../support/message.js";
import { aborted, answerOf, MemoryStore } from "../../support/message-store.js";
import { type Random, seededRandom } from "../../support/seeded-random.js";
import { dynamutex, type SimHost } from "../simulation/protocol.js";
import { Scheduler } from "../simulation/scheduler.js";

/** The table's clock at 0 of virtual time. */
const EPOCH = Date.UTC(2026, 10, 20, 12) + 321;

/** How long a message takes, one way; one in fifty takes ten times as long. */
const WAY_MS = { least: 2, most: 8 };
const SLOW = { share: 0.02, times: 10 };

/** What was done in one world: sections by what they are, and requests. */
export type Counts = Readonly<Record<string, number>>;

/** A process that works. */
export interface WorkHost extends SimHost {
  readonly random: Random;
  readonly number: number;
}

/** Hosts on one table, on virtual time, with nothing that fails: everything is decided by one seed. */
export class WorkWorld {
  readonly #scheduler = new Scheduler();
  readonly #table = new MemoryTable({ pageItems: 1_000 });
  readonly #seed: number;
  readonly #counts = new Map<string, number>();
  #failure: { readonly error: unknown } | undefined;
  #hosts = 0;

  constructor(seed: number) {
    this.#seed = seed;
  }

  host(): WorkHost {
    this.#hosts += 1;
    const owner = `host-${this.#hosts}`;
    const way = seededRandom(this.#seed, "network", owner);
    const clock = this.#clock();
    const carry = async (message: Message, signal: AbortSignal): Promise<Answer> => {
      this.count("requests");
      await clock.sleep(wayMs(way));
      if (signal.aborted) throw aborted(signal);
      const answer = answerOf(this.#table, message);
      await clock.sleep(wayMs(way));
      return answer;
    };
    let uuids = 0;
    const host = dynamutex({
      store: new MemoryStore(this.#table, carry),
      clock,
      owner,
      random: seededRandom(this.#seed, "protocol", owner),
      uuid: () => {
        uuids += 1;
        return `${owner}-${uuids}`;
      },
      togetherFrom: 8,
      watch: () => undefined,
    });
    return { ...host, random: seededRandom(this.#seed, "work", owner), number: this.#hosts };
  }

  count(what: string): void {
    this.#counts.set(what, (this.#counts.get(what) ?? 0) + 1);
  }

  get now(): number {
    return this.#scheduler.now;
  }

  sleep(ms: number): Promise<void> {
    return sleepUntilRung((wake) => this.#scheduler.wakeAt(this.now + ms, wake));
  }

  /** One caller, who works until the world ends. */
  start(work: () => Promise<void>): void {
    work().catch((error: unknown) => {
      this.#failure ??= { error };
    });
  }

  /** Lets the callers work for so long. Then they are left alone: nothing of them is anywhere but in memory. */
  async play(ms: number): Promise<Counts> {
    await this.#scheduler.run(
      ms,
      () => this.#failure !== undefined,
      () => undefined,
    );
    if (this.#failure !== undefined) throw this.#failure.error;
    return Object.fromEntries(this.#counts);
  }

  #clock(): Clock {
    const alarm = (ms: number, ring: () => void) => this.#scheduler.wakeAt(this.now + Math.max(0, ms), ring);
    return {
      wall: () => ({ earliest: EPOCH + this.now, latest: EPOCH + this.now }),
      atLeast: () => this.now,
      atMost: () => this.now,
      alarm,
      sleep: (ms, signal) => sleepUntilRung((wake) => alarm(ms, wake), signal),
    };
  }
}

function wayMs(random: Random): number {
  const ms = WAY_MS.least + random() * (WAY_MS.most - WAY_MS.least);
  return random() < SLOW.share ? ms * SLOW.times : ms;
}
