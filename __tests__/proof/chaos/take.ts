import {
  type FencedLock,
  type Lock,
  type Lockable,
  LockError,
  type LockTable,
  type Permit,
  type TransferableLock,
} from "../../../lib/index.js";
import type { Random } from "../../support/seeded-random.js";
import { breakExclusive, breakPermits, type Defect } from "./defects.js";
import { type Holding, holdingOfPermits, PERMITS } from "./holding.js";
import type { LockGroup } from "./lock-groups.js";

/** What a section was given. */
export interface Taken {
  /** Of the locks that it holds. */
  readonly names: readonly string[];
  readonly lock: Pick<Lock, "held" | "assertHeld" | "unlock">;
  /** What it has of a lock that several may hold together. */
  readonly holding?: Holding;
  /** The lock, if the section writes by guarded transactions. */
  readonly guarding?: Lock | FencedLock;
  /** The lock, if the section may hand it off. */
  readonly transferable?: TransferableLock;
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
  defect: Defect | undefined,
): Promise<Taken | undefined> {
  const lot = random();
  const shortMs = Math.ceil(300 * random());
  const patience: Patience = { signal, waitMs: lot < 0.15 ? 0 : lot < 0.3 ? shortMs : undefined };
  try {
    return await takeWith(locks, group, random, patience, defect);
  } catch (error) {
    if (!signal.aborted && !(error instanceof LockError)) throw error;
    onWithout(error instanceof LockError ? error.code : "stopping");
    return undefined;
  }
}

async function takeWith(
  locks: LockTable,
  { names, kind, mutex, handsOff = false }: LockGroup,
  random: Random,
  patience: Patience,
  defect: Defect | undefined,
): Promise<Taken | undefined> {
  if (names.length > 1 && random() < 0.5) {
    const order = random() < 0.5 ? names : names.toReversed();
    return { names, lock: await locks.lockAll(order, { ...mutex, ...patience }) };
  }
  const name = names[Math.floor(names.length * random())] as string;
  switch (kind) {
    case "mutex": {
      const lock = await lockOne(locks.mutex(name, mutex), patience);
      return lock && takenMutex(name, lock, handsOff);
    }
    case "semaphore": {
      const permits = breakPermits(PERMITS, defect);
      const semaphore = locks.semaphore(name, { ...mutex, permits });
      const several = random() < SEVERAL ? { permits: 2 } : {};
      const lock = await lockOne(
        {
          lock: (options) => semaphore.lock({ ...options, ...several }),
          tryLock: () => semaphore.tryLock(several),
        },
        patience,
      );
      return lock && takenPermit(name, lock);
    }
    case "shared mutex": {
      const sides = locks.sharedMutex(name, mutex);
      const holding = random() < SHARED ? "shared" : "exclusive";
      const side = holding === "shared" ? sides.shared : breakExclusive(sides, defect);
      const lock = await lockOne(side, patience);
      return lock && { names: [name], lock, holding, guarding: lock };
    }
    default:
      return kind satisfies never;
  }
}

/** How many of the sections of a semaphore take two permits. */
const SEVERAL = 0.3;

/** How many of the sections of a shared mutex are of its shared side. */
const SHARED = 0.7;

function takenMutex(name: string, lock: TransferableLock, handsOff: boolean): Taken {
  return {
    names: [name],
    lock,
    ...("fencingToken" in lock && { guarding: lock }),
    ...(handsOff && { transferable: lock }),
  };
}

function takenPermit(name: string, lock: Permit): Taken {
  const { permits } = lock;
  // Several permits have no guard.
  return {
    ...{ names: [name], lock, holding: holdingOfPermits(permits), transferable: lock },
    ...(permits.length === 1 && { guarding: lock }),
  };
}

/** Goes on with a lock that another section has handed off. @throws what `resume()` does. */
export async function resume(
  locks: LockTable,
  { names, kind, mutex }: LockGroup,
  token: string,
  defect: Defect | undefined,
): Promise<Taken> {
  const [name = ""] = names;
  if (kind === "mutex") return takenMutex(name, await locks.mutex(name, mutex).resume(token), true);
  const permits = breakPermits(PERMITS, defect);
  return takenPermit(name, await locks.semaphore(name, { ...mutex, permits }).resume(token));
}

async function lockOne<Held>(
  mutex: Pick<Lockable<Held>, "lock" | "tryLock">,
  { waitMs, signal }: Patience,
): Promise<Held | undefined> {
  if (waitMs === 0) return (await mutex.tryLock()) ?? undefined;
  return await mutex.lock({ signal, waitMs });
}
