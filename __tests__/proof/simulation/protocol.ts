import { Flights } from "../../../lib/flights/flights.js";
import type { Lock } from "../../../lib/lock.js";
import type { LockInfo } from "../../../lib/lock-info.js";
import type { TryRun } from "../../../lib/lockable.js";
import { Mutex } from "../../../lib/mutex.js";
import type {
  ElectOptions,
  LockOptions,
  PermitOptions,
  TryLockOptions,
  TryPermitOptions,
  TryRunOptions,
} from "../../../lib/options/calls.js";
import { type MutexOptions, mutexSettings } from "../../../lib/options/mutex.js";
import { type SemaphoreOptions, semaphoreSettings } from "../../../lib/options/semaphore.js";
import { type SharedMutexOptions, sharedMutexSettings } from "../../../lib/options/shared-mutex.js";
import { Sections } from "../../../lib/queues/sections.js";
import { Semaphore } from "../../../lib/semaphore.js";
import type { Scheduler } from "../../../lib/session/requests.js";
import { Session } from "../../../lib/session/session.js";
import { lockAll } from "../../../lib/sets/lock-all.js";
import { SharedMutex } from "../../../lib/shared-mutex.js";
import type { Store } from "../../../lib/store.js";
import type { Clock } from "../../../lib/time/clock.js";

/** A lock, as far as the simulation uses it. */
export type SimLock = Pick<
  Lock,
  "uuid" | "expires" | "held" | "signal" | "transactWrite" | "unlock" | "replaceData" | "extend"
> & {
  readonly fencingToken?: bigint;
  readonly tick?: number | undefined;
  readonly attempt?: number | undefined;
  uncountAttempt?(): void;
  readonly permit?: number;
  readonly permits?: readonly number[];
  readonly wanted?: boolean;
  handOff?(options: { readonly validForMs: number }): Promise<string>;
};

/** Whatever can be locked, and what some of it can do besides. */
export interface SimLockable {
  lock(options: PermitOptions): Promise<SimLock>;
  tryLock(options: TryLockOptions & TryPermitOptions): Promise<SimLock | null>;
  run(section: (lock: SimLock) => Promise<void>, options: PermitOptions): Promise<void>;
  resume?(token: string, options: { readonly signal?: AbortSignal }): Promise<SimLock>;
  singleFlight?<T>(
    fn: (lock: SimLock) => Promise<T>,
    options: Pick<LockOptions, "signal" | "waitMs"> & { readonly freshMs: number },
  ): Promise<T>;
  tryRun?<T>(fn: (lock: SimLock) => Promise<T>, options: TryRunOptions): Promise<TryRun<T>>;
  elect?(lead: (lock: SimLock) => Promise<void>, options: Pick<ElectOptions, "signal">): SimElection;
}

export interface SimElection {
  readonly lock: SimLock | undefined;
  readonly isLeader: boolean;
  readonly done: Promise<void>;
  resign(): Promise<void>;
}

export type Holder = Pick<LockInfo, "uuid" | "owner" | "expires">;

export interface Forceable {
  forceUnlock(uuid: string, options: { readonly now: boolean }): Promise<boolean>;
}

export interface SimMutex extends SimLockable, Forceable {
  inspect(): Promise<Holder | null>;
}

interface SimSemaphore extends SimLockable, Forceable {
  inspect(): Promise<{ readonly holders: readonly Holder[] }>;
}

interface SimSharedMutex extends Forceable {
  readonly shared: SimLockable;
  readonly exclusive: SimLockable;
  inspect(): Promise<{ readonly exclusive: Holder | null; readonly shared: readonly Holder[] }>;
}

/** Several locks, as far as the simulation uses them. */
export interface SimSet {
  readonly locks: ReadonlyMap<string, SimLock>;
  readonly held: boolean;
  readonly signal: AbortSignal;
  extend(): Promise<void>;
  unlock(): Promise<void>;
}

/** A process's share of the protocol under test. */
export interface SimHost {
  lockAll(names: readonly string[], mutex: MutexOptions, options: LockOptions): Promise<SimSet>;
  mutex(name: string, options: MutexOptions): SimMutex;
  semaphore(name: string, options: SemaphoreOptions): SimSemaphore;
  sharedMutex(name: string, options: SharedMutexOptions): SimSharedMutex;
  close(drainMs?: number): Promise<void>;
}

/** Everything of the outside world that a protocol may use. */
export interface Surroundings {
  readonly store: Store;
  readonly clock: Clock;
  readonly owner: string;
  readonly random: () => number;
  readonly uuid: () => string;
  /** From how many leases on the process sends renewals together. */
  readonly togetherFrom: number;
  /** Called with what sends the requests of the process, before it sends any. */
  readonly watch: (scheduler: Scheduler) => void;
}

export type Protocol = (surroundings: Surroundings) => SimHost;

/** The library's own. */
export const dynamutex: Protocol = (surroundings) => {
  const session = new Session(surroundings);
  surroundings.watch(session.scheduler);
  const sections = new Sections(session);
  const flights = new Flights(sections);
  return {
    mutex: (name, options) => new Mutex(sections, name, mutexSettings(options), flights),
    semaphore: (name, options) => new Semaphore(sections, name, semaphoreSettings(options, {})),
    sharedMutex: (name, options) => new SharedMutex(sections, name, sharedMutexSettings(options, {})),
    lockAll: (names, mutex, options) => {
      const settings = mutexSettings(mutex);
      const members = names.map((name) => ({ name, settings }));
      return lockAll(session, members, options);
    },
    close: (drainMs) => session.close(drainMs),
  };
};
