import type { Store } from "../../lib/store.js";
import { MemoryTable } from "../../lib/testing/memory-table.js";
import type { ManualTime } from "../support/manual-time.js";
import { MemoryStore } from "../support/message-store.js";

/** How a table serves requests: one after another, each for so long, at some distance. */
export interface Service {
  /** How long the table is busy with a request that arrives at this moment of the test. */
  readonly serviceMs: (elapsedMs: number) => number;
  /** There and back. */
  readonly distanceMs: number;
}

/**
 * A table in memory that has only so much capacity, on virtual time: what exceeds it waits, and what nobody waits for any
 * more is served all the same.
 */
export function slowTable(time: ManualTime, { serviceMs, distanceMs }: Service): { store: Store; served(): number } {
  let served = 0;
  let freeAt = 0;
  const clock = time.clock();
  const arrived = async (): Promise<void> => {
    await pass(distanceMs / 2);
    served += 1;
    freeAt = Math.max(freeAt, time.elapsed);
    freeAt += serviceMs(freeAt);
    await pass(freeAt - time.elapsed);
  };
  const pass = (ms: number): Promise<void> =>
    new Promise((resolve) => {
      if (ms > 0) clock.alarm(ms, resolve);
      else resolve();
    });
  const store = new Proxy(new MemoryStore(new MemoryTable()), {
    get(near, member: keyof Store) {
      const operation = near[member] as (...args: unknown[]) => unknown;
      if (typeof operation !== "function") return operation;
      if (member === "admit" || member === "close") return operation.bind(near);
      return async (...args: unknown[]) => {
        await arrived();
        const answer = await operation.apply(near, args);
        await pass(distanceMs / 2);
        return answer;
      };
    },
  });
  return { store, served: () => served };
}
