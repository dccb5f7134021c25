import { describe, expect, it } from "@jest/globals";
import type { Claim } from "../../lib/store.js";
import { Machine } from "./machine.js";
import { MemoryTable } from "./memory-store.js";
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
};

const claim: Claim = {
  name: "a",
  uuid: "u",
  expires: EPOCH + 60_000,
  ttlMs: 60_000,
  owner: "o",
  acquired: EPOCH,
  data: undefined,
};
const terms = { earliest: EPOCH, kept: false };
const patient = (): AbortSignal => new AbortController().signal;

function world(plan: Partial<NetworkPlan> = {}, calmAt = 10_000) {
  const scheduler = new Scheduler();
  const table = new MemoryTable();
  const arrivals: Arrival[] = [];
  const events = {
    sent: () => undefined,
    arrived: (arrival: Arrival) => void arrivals.push(arrival),
    heard: () => undefined,
    turnedDown: () => undefined,
    count: () => undefined,
  };
  const network = new Network(scheduler, table, events, { ...CALM, ...plan }, { epoch: EPOCH, seed: 1, calmAt });
  const machine = new Machine(scheduler, { aheadMs: 0, monotonicPpm: 0, wallPpm: 0 }, { epoch: EPOCH, seed: 1 });
  const dates: (string | undefined)[] = [];
  const store = network.client("A1", machine.start(), { listen: () => (date) => void dates.push(date) });
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
  return { scheduler, table, arrivals, network, machine, store, dates, run, settled };
}

describe("the simulated network", () => {
  it("carries a request and its reply, which bears the table's date in whole seconds", async () => {
    const { table, store, dates, settled, run } = world();
    await run(1_700);
    expect(await settled(store.take(claim, terms, patient()))).toMatchObject({ kind: "granted" });
    expect(table.rows.get("a")?.uuid).toBe("u");
    expect(dates).toEqual(["Fri, 20 Nov 2026 12:00:01 GMT"]);
  });

  it("loses requests, which never arrive", async () => {
    const { arrivals, store, settled } = world({ requestLoss: 100 });
    const outcome = await settled(store.take(claim, terms, patient()));
    expect(outcome === "nothing" || (outcome as { answered?: boolean }).answered === false).toBe(true);
    expect(arrivals).toEqual([]);
  });

  it("loses replies to requests that were applied", async () => {
    const { table, dates, store, settled } = world({ replyLoss: 100 });
    await settled(store.take(claim, terms, patient()));
    expect(table.rows.get("a")?.uuid).toBe("u");
    expect(dates).toEqual([]);
  });

  it("delivers a second copy late", async () => {
    const { table, arrivals, store, settled } = world({ duplicates: 100, lateMs: 5_000 });
    await settled(store.take(claim, terms, patient()));
    expect(arrivals.map(({ duplicate, outcome }) => [duplicate, outcome.kind])).toEqual([
      [false, "granted"],
      [true, "held"],
    ]);
    expect(table.rows.size).toBe(1);
  });

  it("throttles with an answer, and applies nothing", async () => {
    const { table, dates, store, settled } = world({ throttling: 100 });
    expect(await settled(store.take(claim, terms, patient()))).toMatchObject({ transient: true, answered: true });
    expect([table.rows.size, dates.length]).toEqual([0, 1]);
  });

  it("answers an abort at once, and applies the request all the same", async () => {
    const { scheduler, table, store, settled } = world({ delayMs: 1_000, slow: 100, slowMs: 5_000 });
    const impatient = new AbortController();
    scheduler.wakeAt(1, () => impatient.abort(new Error("enough")));
    const outcome = await settled(store.take(claim, terms, impatient.signal));
    expect(outcome).toMatchObject({ transient: true, answered: false });
    expect(table.rows.get("a")?.uuid).toBe("u");
  });

  it("repeats a write whose connection broke where the client does so, and says so where it is refused", async () => {
    const outcomes = new Set<string>();
    for (let seed = 0; seed < 20; seed += 1) {
      const { store, settled, table } = world({ replyLoss: 50, clientRetries: true });
      table.plant({ ...claim, wanted: undefined, fence: undefined, tick: undefined });
      const names = Array.from({ length: seed }, (_, index) => `other-${index}`);
      for (const name of names) await settled(store.read(name, { consistent: true }, patient()), 0);
      const outcome = (await settled(store.release("a", "u", { kept: false }, patient()))) as { kind?: string };
      if (outcome.kind !== undefined) outcomes.add(JSON.stringify(outcome));
    }
    expect(outcomes).toContain('{"kind":"applied"}');
    expect(outcomes).toContain('{"kind":"refused","retried":true}');
  });

  it("refuses, hangs or fails while the table is out of reach", async () => {
    const outcomeOf = async (how: "refuse" | "hang" | "error"): Promise<unknown> => {
      const { store, settled } = world({ outages: [{ atMs: 0, forMs: 5_000, how }] });
      return await settled(store.read("a", { consistent: true }, patient()));
    };
    expect(await outcomeOf("refuse")).toMatchObject({ answered: false });
    expect(await outcomeOf("error")).toMatchObject({ answered: true });
    expect(["nothing", false]).toContain(((await outcomeOf("hang")) as { answered?: boolean }).answered ?? "nothing");
  });

  it("is calm after the faults, and delivers everything by then", async () => {
    const { arrivals, network, store, run, settled } = world(
      { duplicates: 100, lateMs: 60_000, replyLoss: 100 },
      2_000,
    );
    await settled(store.take(claim, terms, patient()), 2_000);
    await run(2_010);
    expect([arrivals.length, network.underWay]).toEqual([2, 0]);
    expect(await settled(store.read("a", { consistent: true }, patient()), 3_000)).toMatchObject({ uuid: "u" });
  });
});
