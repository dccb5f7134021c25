import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { lockAt } from "../../lib/protocol/addresses.js";
import type { Take } from "../../lib/protocol/writes.js";
import { explore, parseStart } from "./explore.js";
import { Violation } from "./invariants.js";
import { CALM } from "./network.js";
import { dynamutex, type Protocol, type SimLock, type SimMutex, type Surroundings } from "./protocol.js";
import { type HostPlan, QUIET_HOST, type Schedule, type Step, schedules } from "./schedule.js";
import { probeOf, simulate } from "./world.js";

const step: Step = { ...probeOf("mutex", "name-0"), withinMs: 1_000, pauseMs: 10, holdMs: 200 };

const host: HostPlan = { ...QUIET_HOST, programs: [[step]] };

const quiet: Schedule = {
  // One that has neither flights nor ticks in the place of its steps.
  seed: 2,
  clock: "table",
  calmAtMs: 2_000,
  crowd: undefined,
  mix: "mutexes",
  permits: 1,
  hurry: 1,
  hosts: [host, host],
  network: { ...CALM, delayMs: 5, clientRetries: false, outages: [] },
};

const never = new Promise<never>(() => undefined);

const LATER = new Date(Date.UTC(2100, 0));

function notAskedFor(): never {
  throw new TypeError("not asked for");
}

/** A protocol that is wrong: its mutexes give locks away that nobody ever wrote down, and what is changed of them. */
function wrong(change: Partial<SimMutex> = {}): Protocol {
  return ({ uuid, store }) => ({
    close: () => Promise.resolve(),
    lockAll: notAskedFor,
    semaphore: notAskedFor,
    sharedMutex: notAskedFor,
    mutex: (name) => {
      const held = uuid();
      const lock: SimLock = {
        uuid: held,
        expires: LATER,
        held: true,
        signal: new AbortController().signal,
        transactWrite: () => Promise.resolve(),
        unlock: async () => {
          const leaves = { kind: "free" } as const;
          const release = { kind: "vacate", at: lockAt(name), uuid: held, leaves, remembers: "nothing" } as const;
          await store.write(release, new AbortController().signal);
        },
      };
      const mutex: SimMutex = {
        lock: () => Promise.resolve(lock),
        tryLock: () => Promise.resolve(lock),
        inspect: () => Promise.resolve(null),
        forceUnlock: () => Promise.resolve(false),
        run: (section) => section(lock),
      };
      return { ...mutex, ...change };
    },
  });
}

/** A protocol that writes the rows of its locks, on whatever it finds there. */
function taking(stampOf: (surroundings: Surroundings) => number): Protocol {
  return (surroundings) => ({
    ...wrong()(surroundings),
    mutex: (name, options) => {
      const mutex = wrong()(surroundings).mutex(name, options);
      const lock = async (): Promise<SimLock> => {
        const { signal } = new AbortController();
        const got = await mutex.lock({});
        const take: Take = {
          kind: "take",
          at: lockAt(name),
          uuid: got.uuid,
          expires: Math.ceil(stampOf(surroundings)) + 1_000,
          ttlMs: 1_000,
          owner: surroundings.owner,
          acquired: 0,
          knowledge: { earliest: Number.MAX_SAFE_INTEGER },
          remembers: "nothing",
        };
        await surroundings.store.write(take, signal);
        return got;
      };
      return { ...mutex, lock };
    },
  });
}

const latest = ({ clock }: Surroundings): number => clock.wall()?.latest ?? Date.UTC(2026, 10, 20, 12);

async function violationOf(protocol: Protocol, schedule: Schedule = quiet): Promise<string> {
  const error: unknown = await simulate(schedule, protocol).catch((reason: unknown) => reason);
  if (!(error instanceof Violation)) throw new Error(`not a violation: ${error}`);
  return error.invariant;
}

describe("the simulated world", () => {
  it("does the same again for the same schedule, and something else for another seed", async () => {
    const [schedule] = fc.sample(schedules, { numRuns: 1, seed: 42 });
    if (schedule === undefined) throw new Error("no schedule");
    const first = await simulate(schedule, dynamutex, { trace: true });
    const second = await simulate(schedule, dynamutex, { trace: true });
    const other = await simulate({ ...schedule, seed: schedule.seed + 1 }, dynamutex, { trace: true });
    expect(first.trace).not.toHaveLength(0);
    expect(second.trace).toEqual(first.trace);
    expect(second.coverage.toString()).toBe(first.coverage.toString());
    expect(other.trace).not.toEqual(first.trace);
  });

  it("has no complaint about a protocol that is right", async () => {
    const { coverage } = await simulate(quiet, dynamutex);
    expect(coverage.of("locks taken")).toBe(2);
  });

  it.each<[string, Partial<SimMutex>, string]>([
    ["a holder that has no row", {}, "the row stands while it is held"],
    ["a free lock that nobody obtains", { lock: () => never }, "a free lock is obtained"],
    ["a call that ends as it should not", { lock: notAskedFor }, "a call ends as documented"],
  ])("sees %s", async (_, change, violation) => {
    expect(await violationOf(wrong(change))).toBe(violation);
  });

  it("sees a call that never settles", async () => {
    const schedule: Schedule = { ...quiet, hosts: [{ ...host, programs: [[{ ...step, kind: "tryLock" }]] }] };
    expect(await violationOf(wrong({ tryLock: () => never }), schedule)).toBe("every promise settles");
  });

  it("sees two that hold", async () => {
    const violation = await violationOf(taking(latest), { ...quiet, clock: "system" });
    expect(["one holder", "the row stands while it is held"]).toContain(violation);
  });

  it("sees a take by a process that does not know the time", async () => {
    expect(await violationOf(taking(latest))).toBe("no write before the time is known");
  });

  it("sees a take whose stamp lies too late", async () => {
    const late = taking((surroundings) => latest(surroundings) + 5_000);
    expect(await violationOf(late, { ...quiet, clock: "system" })).toBe("a stamp is near the time");
  });

  it("sees a timer that is left", async () => {
    const forgetful: Protocol = (surroundings) => {
      const right = dynamutex(surroundings);
      return {
        ...right,
        mutex: (name, options) => {
          surroundings.clock.alarm(3_600_000, () => undefined);
          return right.mutex(name, options);
        },
      };
    };
    expect(await violationOf(forgetful)).toBe("no timer is left");
  });

  it("reduces a failing schedule, and tells how to replay it", async () => {
    const failing = wrong();
    const failure = await explore(failing, { seed: 7 }, 50).catch((error: Error) => error);
    if (!(failure instanceof Error)) throw new Error("nothing was found");
    const [, replay] = /SIM_SEED=(\S+)/.exec(failure.message) ?? [];
    expect(failure.message).toContain('"hosts":[{');
    const again = await explore(failing, parseStart(replay ?? ""), 1).catch((error: Error) => error);
    expect((again as Error).message.split("\n")[3]).toBe(failure.message.split("\n")[3]);
  });
});
