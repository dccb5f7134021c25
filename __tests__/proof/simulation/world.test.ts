import { channel } from "node:diagnostics_channel";
import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import type { Take, Write } from "../../../lib/protocol/writes.js";
import type { Store, WriteOutcome } from "../../../lib/store.js";
import { explore, parseStart } from "./explore.js";
import { Violation } from "./invariants.js";
import { CALM } from "./network.js";
import { dynamutex, type Protocol, type SimMutex } from "./protocol.js";
import { type HostPlan, QUIET_HOST, type Schedule, type Step, schedules } from "./schedule.js";
import { probeOf } from "./steps.js";
import { simulate } from "./world.js";

const step: Step = { ...probeOf("mutex", "name-0"), withinMs: 1_000, pauseMs: 10, holdMs: 200 };

const host: HostPlan = { ...QUIET_HOST, programs: [[step]] };

const quiet: Schedule = {
  // One that has neither flights nor ticks in the place of its steps, and elections in that of a `run`.
  seed: 2,
  clock: "table",
  calmAtMs: 2_000,
  crowd: undefined,
  mix: "mutexes",
  permits: 1,
  hurry: 1,
  hosts: [host, host],
  network: { ...CALM, delayMs: 5, clientRetries: false, outages: [], passes: true, strangers: [] },
};

const never = new Promise<never>(() => undefined);

/** The library, with mutexes that are changed. */
function changed(change: Partial<SimMutex>): Protocol {
  return (surroundings) => {
    const host = dynamutex(surroundings);
    return { ...host, mutex: (name, options) => Object.assign(host.mutex(name, options), change) };
  };
}

/** The library, with takes that are sent otherwise. */
function taking(send: (take: Take, write: (it: Write) => Promise<WriteOutcome>) => Promise<WriteOutcome>): Protocol {
  return (surroundings) => {
    const { store } = surroundings;
    const write = store.write.bind(store);
    const sent: Store["write"] = (it, signal) =>
      it.kind === "take" ? send(it, (one) => write(one, signal)) : write(it, signal);
    return dynamutex({ ...surroundings, store: Object.assign(store, { write: sent }) });
  };
}

/** Holds what nobody ever wrote down. */
const rowless: Protocol = taking(async () => ({ kind: "applied", replaced: undefined, drawn: undefined }));

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

  it("hears nothing of the locks that its process has beside it", async () => {
    const beside: Protocol = (surroundings) => {
      const host = dynamutex(surroundings);
      const told = { name: "lock-1", uuid: "theirs", heldMs: 1 };
      return {
        ...host,
        mutex: (name, options) => {
          channel("dynamutex:released").publish(told);
          return host.mutex(name, options);
        },
      };
    };
    const { coverage } = await simulate(quiet, beside);
    expect(coverage.of("locks taken")).toBe(2);
  });

  it("sees a holder that has no row", async () => {
    expect(await violationOf(rowless)).toBe("the row stands while it is held");
  });

  it("sees two that hold", async () => {
    const greedy = taking((take, write) => write({ ...take, knowledge: { earliest: Number.MAX_SAFE_INTEGER } }));
    expect(["one holder", "the row stands while it is held"]).toContain(await violationOf(greedy));
  });

  it("sees a take by a process that does not know the time", async () => {
    const time = Date.UTC(2026, 10, 20, 12);
    const hasty: Protocol = (surroundings) => {
      const clock = { ...surroundings.clock, isCurrent: () => true, wall: () => ({ earliest: time, latest: time }) };
      return dynamutex({ ...surroundings, clock });
    };
    expect(await violationOf(hasty)).toBe("no write before the time is known");
  });

  it("sees a take whose stamp lies too late", async () => {
    const late = taking((take, write) => write({ ...take, expires: take.expires + 5_000 }));
    expect(await violationOf(late)).toBe("a stamp is near the time");
  });

  it("sees a call that never settles", async () => {
    const schedule: Schedule = { ...quiet, hosts: [{ ...host, programs: [[{ ...step, kind: "tryLock" }]] }] };
    expect(await violationOf(changed({ tryLock: () => never }), schedule)).toBe("every promise settles");
  });

  it("sees a free lock that nobody obtains", async () => {
    expect(await violationOf(changed({ lock: () => never }))).toBe("a free lock is obtained");
  });

  it("sees a call that ends as it should not", async () => {
    const failing = changed({ lock: () => Promise.reject(new TypeError("oops")) });
    expect(await violationOf(failing)).toBe("a call ends as documented");
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
    const failing = rowless;
    const failure = await explore(failing, { seed: 7 }, 50).catch((error: Error) => error);
    if (!(failure instanceof Error)) throw new Error("nothing was found");
    const [, replay] = /SIM_SEED=(\S+)/.exec(failure.message) ?? [];
    expect(failure.message).toContain('"hosts":[{');
    const again = await explore(failing, parseStart(replay ?? ""), 1).catch((error: Error) => error);
    expect((again as Error).message.split("\n")[3]).toBe(failure.message.split("\n")[3]);
  });
});
