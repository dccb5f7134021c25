import { type FencedLock, type Lockable, LockError, type LockTable } from "../../lib/index.js";
import type { Random } from "../support/seeded-random.js";
import type { SectionLock } from "./defects.js";
import type { LockGroup } from "./lock-groups.js";

/** What a section was given. */
export interface Taken {
  /** Of the locks that it holds. */
  readonly names: readonly string[];
  readonly lock: SectionLock;
  readonly fenced?: FencedLock;
}

/** How long a call waits: `undefined` for as long as it takes. */
interface Patience {
  readonly waitMs: number | undefined;
  readonly signal: AbortSignal;
}

/**
 * Wants the lock, or a set or one of its locks alone, in one of the ways there are.
 * @returns undefined if it was disappointed, which `onWithout` is told.
 */
export async function take(
  locks: LockTable,
  group: LockGroup,
  random: Random,
  signal: AbortSignal,
  onWithout: (because: string) => void,
): Promise<Taken | undefined> {
  const lot = random();
  const shortMs = Math.ceil(300 * random());
  const patience: Patience = { signal, waitMs: lot < 0.15 ? 0 : lot < 0.3 ? shortMs : undefined };
  try {
    return await takeWith(locks, group, random, patience);
  } catch (error) {
    if (!signal.aborted && !(error instanceof LockError)) throw error;
    onWithout(error instanceof LockError ? error.code : "stopping");
    return undefined;
  }
}

async function takeWith(
  locks: LockTable,
  { names, mutex }: LockGroup,
  random: Random,
  patience: Patience,
): Promise<Taken | undefined> {
  if (names.length > 1 && random() < 0.5) {
    const order = random() < 0.5 ? names : names.toReversed();
    return { names, lock: await locks.lockAll(order, { ...mutex, ...patience }) };
  }
  const name = names[Math.floor(names.length * random())] as string;
  if (mutex.fencing) {
    const fenced = await lockOne(locks.mutex(name, { ...mutex, fencing: true }), patience);
    return fenced && { names: [name], lock: fenced, fenced };
  }
  const lock = await lockOne(locks.mutex(name, mutex), patience);
  return lock && { names: [name], lock };
}

async function lockOne<Held>(mutex: Lockable<Held>, { waitMs, signal }: Patience): Promise<Held | undefined> {
  if (waitMs === 0) return (await mutex.tryLock()) ?? undefined;
  return await mutex.lock({ signal, waitMs });
}
