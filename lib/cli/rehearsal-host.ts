import { subscribe } from "node:diagnostics_channel";
import { on } from "node:events";
import { type Diagnostics, findLockLost, type LossReason, type Mutex, systemClock } from "../index.js";

/** How long a section of a rehearsal works between its read and its write. */
const WORK_MS = 20;

/** The processes of a rehearsal are on one machine, and its wall clock is the same for all of them. */
const clock = systemClock({ maxSkewMs: 0 });
export const now = (): number => clock.wall()?.latest ?? 0;

/** What requests have cost so far. */
export interface Used {
  requests: number;
  writeUnits: number;
  readUnits: number;
}

/** Counts the requests of this process from now on. */
export function meter(): Used {
  const used: Used = { requests: 0, writeUnits: 0, readUnits: 0 };
  subscribe("dynamutex:request", (message) => {
    const { attempts, outcome, writeUnits, readUnits } = message as Diagnostics["dynamutex:request"];
    used.requests += attempts;
    used.writeUnits += writeUnits ?? (outcome === "refused" ? 1 : 0); // its reply does not tell
    used.readUnits += readUnits ?? 0;
  });
  return used;
}

/** What a host tells the process that has started it. */
type Event =
  /** Its section has begun, and waits for `read`. */
  | { readonly kind: "began" }
  /** It writes this count, and waits for `release` in its section, and for `again` after it. */
  | { readonly kind: "wrote"; readonly count: number }
  | { readonly kind: "lost"; readonly reason: LossReason }
  | { readonly kind: "failed"; readonly message: string };

export type Told = Event & { readonly at: number; readonly used: Used };

/** What it is answered: that it may read the count, release the lock, or take it again. */
export type Answer = readonly [answer: "read" | "release" | "again", count: number];

/**
 * One host of a rehearsal: takes the lock, reads a count that its parent keeps, writes the next one, and lets another host begin
 * before it takes the lock again. It ends when its parent disconnects, or is gone.
 */
export async function playHost(mutex: Mutex, close: () => Promise<void>): Promise<void> {
  // Ctrl-C reaches the parent as well, which ends this process.
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => undefined);
  const inbox = on(process, "message");
  const answer = async (wanted: Answer[0]): Promise<number> => {
    // Of a section that was lost after its write, `again` is not waited for.
    for (;;) {
      const { value, done } = await inbox.next();
      if (done || value[0][0] === wanted) return value?.[0][1];
    }
  };
  process.once("disconnect", () => {
    void inbox.return?.(); // ends a section that waits for an answer
    void close().catch(() => undefined);
  });
  const used = meter();
  const tell = (event: Event): void => {
    if (process.connected) process.send?.({ ...event, at: now(), used }, () => undefined);
  };
  while (process.connected) {
    try {
      await mutex.run(async (lock) => {
        tell({ kind: "began" });
        const count = await answer("read");
        await clock.sleep(WORK_MS, lock.signal);
        lock.assertHeld();
        tell({ kind: "wrote", count: count + 1 });
        await answer("release");
      });
      await answer("again");
    } catch (error) {
      const lost = findLockLost(error);
      tell(lost ? { kind: "lost", reason: lost.reason } : { kind: "failed", message: (error as Error).message });
      if (lost === undefined && process.connected) process.disconnect();
    }
  }
}
