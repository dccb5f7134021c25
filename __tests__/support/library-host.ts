import { Flights } from "../../lib/flights/flights.js";
import { Mutex } from "../../lib/mutex.js";
import { type MutexOptions, mutexSettings } from "../../lib/options/mutex.js";
import { type SemaphoreOptions, semaphoreSettings } from "../../lib/options/semaphore.js";
import { type SharedMutexOptions, sharedMutexSettings } from "../../lib/options/shared-mutex.js";
import { Sections } from "../../lib/queues/sections.js";
import { Semaphore } from "../../lib/semaphore.js";
import { Session } from "../../lib/session/session.js";
import { lockAll } from "../../lib/sets/lock-all.js";
import type { LockSet } from "../../lib/sets/lock-set.js";
import { SharedMutex } from "../../lib/shared-mutex.js";

/** One process of the library, on whatever store and clock a test has. */
export class LibraryHost {
  readonly session: Session;
  readonly sections: Sections;
  readonly flights: Flights;

  constructor(parts: ConstructorParameters<typeof Session>[0]) {
    this.session = new Session(parts);
    this.sections = new Sections(this.session);
    this.flights = new Flights(this.sections);
  }

  mutex(name: string, options: MutexOptions = {}): Mutex {
    return new Mutex(this.sections, name, mutexSettings(options), this.flights);
  }

  semaphore(name: string, options: SemaphoreOptions): Semaphore {
    this.session.usesSemaphore(name, options.permits);
    return new Semaphore(this.sections, name, semaphoreSettings(options, {}));
  }

  sharedMutex(name: string, options: SharedMutexOptions = {}): SharedMutex {
    return new SharedMutex(this.sections, name, sharedMutexSettings(options, {}));
  }

  lockAll(names: readonly string[], options: MutexOptions = {}): Promise<LockSet> {
    const settings = mutexSettings(options);
    const members = names.map((name) => ({ name, settings }));
    return lockAll(this.session, members, { waitMs: settings.waitMs });
  }
}
