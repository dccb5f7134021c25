import type { Lock, Lockable } from "../../lib/index.js";
import type { Mutex } from "../../lib/mutex.js";
import type { LockOptions } from "../../lib/options/calls.js";
import type { MutexOptions } from "../../lib/options/mutex.js";
import { MemoryTable } from "../../lib/testing/memory-table.js";
import type { Clock } from "../../lib/time/clock.js";
import { watch } from "./eventually.js";
import { LibraryHost } from "./library-host.js";
import { ManualTime } from "./manual-time.js";
import type { Message } from "./message.js";
import { aborted, answerOf, MemoryStore } from "./message-store.js";
import { seededRandom } from "./seeded-random.js";

/** How long a message takes to the table, and an answer back, where a test says nothing else. */
const ONE_WAY_MS = 4;

/** What the callers of a host ask for, again and again. */
export interface Work {
  readonly sectionMs: number;
  /** One mutex object for each; the callers use them in turn. Default: one without options. */
  readonly mutexes?: readonly MutexOptions[];
  readonly lock?: LockOptions;
  readonly guarded?: boolean;
  readonly callers?: number;
  /** How long a caller pauses between two sections. Default 0. */
  readonly pauseMs?: number;
  /** Whether its callers try, every 5 ms, and do not wait. */
  readonly tries?: boolean;
  /** How many permits there are, where a semaphore takes the place of a mutex. */
  readonly permits?: number;
  /** How long a message of this host takes to the table, and an answer back. Default: as long as for all hosts. */
  readonly oneWayMs?: number;
  /** Which side of a shared mutex takes the place of a mutex. */
  readonly side?: "shared" | "exclusive";
}

/** A process that wants one lock all the time. */
export class BusyHost {
  sections = 0;
  readonly messages: Message[] = [];
  /** How long each section had been waited for. */
  readonly waits: number[] = [];
  readonly #clock: Clock;
  readonly #host: LibraryHost;
  readonly #callers: Promise<void>[];

  constructor(
    {
      time,
      table,
      oneWayMs: usual,
    }: { readonly time: ManualTime; readonly table: MemoryTable; readonly oneWayMs: number },
    owner: string,
    { mutexes = [{}], callers = 1, oneWayMs = usual, ...work }: Work,
  ) {
    this.#clock = time.clock();
    const store = new MemoryStore(table, async (message, signal) => {
      this.messages.push(message);
      await this.#clock.sleep(oneWayMs);
      if (signal.aborted) throw aborted(signal);
      const answer = answerOf(table, message);
      await this.#clock.sleep(oneWayMs);
      return answer;
    });
    const random = seededRandom(1, owner);
    this.#host = new LibraryHost({ store, clock: this.#clock, owner, random });
    const objects = mutexes.map((options) => this.#lockable(options, work));
    this.#callers = Array.from({ length: callers }, (_, index) =>
      this.#call(objects[index % objects.length] as Lockable, work).catch(() => undefined),
    );
  }

  mutex(options: MutexOptions): Mutex {
    return this.#host.mutex(NAME, options);
  }

  #lockable(options: MutexOptions, { permits, side }: Pick<Work, "permits" | "side">): Lockable {
    if (permits !== undefined) return this.#host.semaphore(NAME, { ...options, permits });
    return side === undefined ? this.mutex(options) : this.#host.sharedMutex(NAME, options)[side];
  }

  get requests(): number {
    return this.messages.length;
  }

  get marks(): number {
    return this.messages.filter((message) => message.kind === "write" && message.write.kind === "want").length;
  }

  /** Ends its callers: what waits is rejected, what is held is released. */
  async close(): Promise<void> {
    await this.#host.session.close();
    await Promise.all(this.#callers);
  }

  async #call(mutex: Lockable, work: Omit<Work, "mutexes" | "callers">): Promise<void> {
    for (;;) {
      const askedAt = this.#clock.atLeast();
      const lock = work.tries ? await this.#try(mutex) : await mutex.lock(work.lock);
      this.waits.push(this.#clock.atLeast() - askedAt);
      this.sections += 1;
      if (work.guarded) await lock.guard();
      await this.#clock.sleep(work.sectionMs);
      await lock.unlock();
      if (work.pauseMs !== undefined) await this.#clock.sleep(work.pauseMs);
    }
  }

  async #try(mutex: Lockable): Promise<Lock> {
    for (;;) {
      const lock = await mutex.tryLock();
      if (lock !== null) return lock;
      await this.#clock.sleep(5);
    }
  }
}

export const NAME = "wanted by all";

/** Several hosts that want one lock, on a time of their own. */
export class DistantHosts {
  readonly time = new ManualTime();
  readonly table = new MemoryTable({ pageItems: 1_000 });
  readonly hosts: BusyHost[] = [];
  readonly oneWayMs: number;

  constructor({ oneWayMs = ONE_WAY_MS }: { readonly oneWayMs?: number } = {}) {
    this.oneWayMs = oneWayMs;
  }

  add(work: Work): BusyHost {
    const host = new BusyHost(this, `host-${this.hosts.length + 1}`, work);
    this.hosts.push(host);
    return host;
  }

  async close(): Promise<void> {
    const closed = Promise.all(this.hosts.map((host) => host.close()));
    const watched = watch(closed);
    while (!watched.settled) await this.time.advance(10);
    await closed;
  }
}
