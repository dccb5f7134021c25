import type { LockOptions, TryLockOptions } from "../../lib/call-options.js";
import type { Clock } from "../../lib/clock.js";
import { Host } from "../../lib/host.js";
import type { Lock } from "../../lib/lock.js";
import type { LockInfo } from "../../lib/lock-info.js";
import { Mutex } from "../../lib/mutex.js";
import { type MutexOptions, mutexSettings } from "../../lib/mutex-options.js";
import { Sections } from "../../lib/sections.js";
import type { TableStore } from "../../lib/ticket-store.js";

/** A lock, as far as the simulation uses it. */
export type SimLock = Pick<Lock, "uuid" | "expires" | "held" | "signal" | "transactWrite" | "unlock"> & {
  readonly fencingToken?: bigint;
  readonly tick?: number | undefined;
};

export interface SimMutex {
  lock(options: LockOptions): Promise<SimLock>;
  tryLock(options: TryLockOptions): Promise<SimLock | null>;
  inspect(): Promise<Pick<LockInfo, "uuid" | "expires"> | null>;
  forceUnlock(uuid: string, options: { readonly now: boolean }): Promise<boolean>;
  run(section: (lock: SimLock) => Promise<void>, options: LockOptions): Promise<void>;
}

/** A process's share of the protocol under test. */
export interface SimHost {
  mutex(name: string, options: MutexOptions): SimMutex;
  close(): Promise<void>;
}

/** Everything of the outside world that a protocol may use. */
export interface Surroundings {
  readonly store: TableStore;
  readonly clock: Clock;
  readonly owner: string;
  readonly random: () => number;
  readonly uuid: () => string;
}

export type Protocol = (surroundings: Surroundings) => SimHost;

/** The library's own. */
export const dynamutex: Protocol = (surroundings) => {
  const host = new Host(surroundings);
  const sections = new Sections(host);
  return {
    mutex: (name, options) => new Mutex(sections, name, mutexSettings(options)),
    close: () => host.close(),
  };
};
