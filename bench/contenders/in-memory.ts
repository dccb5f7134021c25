import { setTimeout as sleep } from "node:timers/promises";
import { MemoryStore } from "../../__tests__/support/message-store.js";
import { Mutex } from "../../lib/mutex.js";
import { mutexSettings } from "../../lib/options/mutex.js";
import { Sections } from "../../lib/queues/sections.js";
import { Session } from "../../lib/session/session.js";
import type { Store } from "../../lib/store.js";
import { MemoryTable } from "../../lib/testing/memory-table.js";
import { systemClock } from "../../lib/time/clock.js";
import type { Locker, LockerOptions } from "./locker.js";

const REQUEST_MS = 5;

/** This library on a table in the process itself, at a distance of so many ms. */
export async function openInMemory({ leaseMs }: LockerOptions): Promise<Locker> {
  let requests = 0;
  const near = new MemoryStore(new MemoryTable());
  const far = new Proxy<Store>(near, {
    get(store, member: keyof Store) {
      const operation = store[member] as (...args: unknown[]) => unknown;
      if (typeof operation !== "function") return operation;
      if (member === "admit" || member === "close") return operation.bind(store);
      return async (...args: unknown[]) => {
        requests += 1;
        await sleep(REQUEST_MS);
        return operation.apply(store, args);
      };
    },
  });
  const session = new Session({ store: far, clock: systemClock(), owner: "bench" });
  const sections = new Sections(session);
  const settings = mutexSettings({ ttlMs: leaseMs });
  return {
    async lock(name) {
      const lock = await new Mutex(sections, name, settings).lock();
      return () => lock.unlock();
    },
    close: () => session.close(),
    requests: () => requests,
  };
}
