import { describe, expect, it } from "@jest/globals";
import { lockAt } from "../../lib/protocol/addresses.js";
import type { Row } from "../../lib/protocol/row.js";
import type { Take, Vacate } from "../../lib/protocol/writes.js";
import { MemoryTable } from "../../lib/testing/memory-table.js";
import { Machine } from "./machine.js";
import { type Arrival, Network, type NetworkPlan } from "./network.js";
import { Scheduler } from "./scheduler.js";

const EPOCH = Date.UTC(2026, 10, 20, 12);
const CALM: NetworkPlan = {
  delayMs: 10,
  slow: 0,
  slowMs: 0,
  requestLoss: 0,
  replyLoss: 0,
  duplicates: 0,
  lateMs: 0,
  throttling: 0,
  stale: 0,
  clientRetries: false,
  outages: [],
  wrongDates: undefined,
};

const at = lockAt("a");
const take: Take = {
  kind: "take",
  at,
  uuid: "u",
  expires: EPOCH + 60_000,
  ttlMs: 60_000,
  owner: "o",
  acquired: EPOCH,
  knowledge: { earliest: EPOCH },
  remembers: "nothing",
};
const release: Vacate = { kind: "vacate", at, uuid: "u", leaves: { kind: "free" }, remembers: "nothing" };
const patient = (): AbortSignal => new AbortController().signal;

function world(plan: Partial<NetworkPlan> = {}, { calmAt = 10_000, seed = 1 } = {}) {
  const scheduler = new Scheduler();
  const table = new MemoryTable();
  const arrivals: Arrival[] = [];
  const events = {
    sent: () => undefined,
    arrived: (arrival: Arrival) => void arrivals.push(arrival),
    heard: () => undefined,
    learned: () => undefined,
    turnedDown: () => undefined,
    count: () => undefined,
  };
  const network = new Network(scheduler, table, events, { ...CALM, ...plan }, { epoch: EPOCH, seed, calmAt });
  const machine = new Machine(scheduler, { aheadMs: 0, monotonicPpm: 0, wallPpm: 0 }, { epoch: EPOCH, seed });
  const dates: (string | undefined)[] = [];
  const clock = { listen: () => (date: string | undefined) => void dates.push(date), wall: () => undefined };
  const store = network.client("A1", machine.start(), clock);
  const run = (until: number) =>
    scheduler.run(
      until,
      () => false,
      () => undefined,
    );
  /** What a request came to, or that it never did. */
  const settled = async (request: Promise<unknown>, until = 9_000): Promise<unknown> => {
    let outcome: unknown = "nothing";
    request.then(
      (value) => {
        outcome = value;
      },
      (error: unknown) => {
        outcome = error;
      },
    );
    await run(until);
    return outcome;
  };
  return { scheduler, table, arrivals, network, store, dates, run, settled };
}

describe("the simulated network", () => {
  it("shows a wrong date to a process that has heard the right one, and for a while to all", async () => {
    const spell = { atMs: 3_000, forMs: 1_000, share: 100 };
    const { store, dates, run, settled } = world({ wrongDates: { aheadMs: 60_000, share: 0, spell } });
    for (const moment of [3_100, 3_200, 4_100]) {
      await run(moment);
      await settled(store.read(at, { consistent: true }, patient()), moment + 50);
    }
    expect(dates).toEqual([
      "Fri, 20 Nov 2026 12:00:03 GMT",
      "Fri, 20 Nov 2026 12:01:03 GMT",
      "Fri, 20 Nov 2026 12:00:04 GMT",
    ]);
  });

  it("answers an abort at once, and applies the request all the same", async () => {
    const { scheduler, table, store, settled } = world({ delayMs: 1_000, slow: 100, slowMs: 5_000 });
    const impatient = new AbortController();
    scheduler.wakeAt(1, () => impatient.abort(new Error("enough")));
    const outcome = await settled(store.write(take, impatient.signal));
    expect(outcome).toMatchObject({ transient: true, answered: false });
    expect(table.row(at)?.uuid).toBe("u");
  });

  it("repeats a write whose connection broke where the client does so, and says so where it is refused", async () => {
    const outcomes = new Set<unknown>();
    for (let seed = 0; seed < 40; seed += 1) {
      const { store, settled, table } = world({ replyLoss: 50, clientRetries: true }, { seed });
      table.apply(take);
      outcomes.add(JSON.stringify(await settled(store.write(release, patient()))));
    }
    expect(outcomes).toContain('{"kind":"applied"}');
    expect(outcomes).toContain('{"kind":"refused","retried":true}');
    expect(outcomes).not.toContain('{"kind":"refused","retried":false}');
  });

  it("answers a read that is not consistent with what was, and one that is with what is", async () => {
    const { store, settled, table } = world({ stale: 100 });
    table.apply(take);
    await settled(store.write(release, patient()), 20);
    const query = { name: "a", first: "a", last: "z", limit: 5 } as const;
    const stale = (await settled(store.read(at, { consistent: false }, patient()), 40)) as Row;
    const staleQuery = await settled(store.query({ ...query, consistent: false }, patient()), 60);
    const fresh = await settled(store.query({ ...query, consistent: true }, patient()), 80);
    expect(stale.uuid).toBe("u");
    expect(staleQuery).toMatchObject({ rows: [{ uuid: "u" }] });
    expect(fresh).toMatchObject({ rows: [] });
    expect(await settled(store.read(at, { consistent: true }, patient()), 100)).toBeUndefined();
  });

  it("is calm after the faults, and delivers everything by then", async () => {
    const plan = { duplicates: 100, lateMs: 60_000, replyLoss: 100 };
    const { arrivals, network, store, run, settled } = world(plan, { calmAt: 2_000 });
    await settled(store.write(take, patient()), 2_000);
    await run(2_010);
    expect([arrivals.length, network.underWay]).toEqual([2, 0]);
    expect(await settled(store.read(at, { consistent: true }, patient()), 3_000)).toMatchObject({ uuid: "u" });
  });
});
