import { afterEach, beforeEach, expect, test } from "@jest/globals";
import { LockTable } from "../../lib/index.js";
import { type FaultProxy, startFaultProxy } from "../support/fault-proxy.js";
import type { Host } from "../support/host-process.js";
import { startLockHost } from "../support/lock-host.js";
import { now } from "../support/monotonic.js";
import { createTestTable, testClient, testEndpoint } from "../support/table.js";
import { tableClockOnWrongHost } from "../support/wrong-clock.js";
import { type Arrival, noteArrivals } from "./arrivals.js";
import { overlaps } from "./counter-row.js";
import type { CounterConfig, CounterMessage } from "./hosts/counter.js";

const HOUR = 60 * 60 * 1_000;
const TTL_MS = 2_000;
const TURNS = 20;

let proxy: FaultProxy;
let tableName: string;

beforeEach(async () => {
  tableName = await createTestTable();
  proxy = await startFaultProxy({ target: testEndpoint() });
});

afterEach(() => proxy.close());

test("an hour ahead and an hour behind: two hosts share a lock for many turns, and one takes over from the other", async () => {
  const arrivals = noteArrivals(proxy);
  const start = (client: string, config: Pick<CounterConfig, "turns" | "wrongByMs" | "stayIn">): Host<CounterMessage> =>
    startLockHost<CounterMessage>(new URL("./hosts/counter.js", import.meta.url), {
      endpoint: proxy.endpointFor(client),
      config: { tableName, mutex: { ttlMs: TTL_MS, poll: { minMs: 5, maxMs: 50 } }, ...config } satisfies CounterConfig,
    });
  await using behind = start("behind", { turns: Number.MAX_SAFE_INTEGER, wrongByMs: -HOUR });
  await behind.message(({ kind }) => kind === "turn");
  await using ahead = start("ahead", { turns: TURNS, wrongByMs: HOUR, stayIn: TURNS - 1 });
  const half = await ahead.message(({ kind }) => kind === "staying");
  const killed = now();
  const killedAt = Date.now();
  ahead.kill("SIGKILL");
  await ahead.exit;
  for (let turn = 0; turn < TURNS; turn += 1) await behind.next(({ kind }) => kind === "turn");

  expect(turnsOf(ahead)).toHaveLength(TURNS - 1);
  expect(overlaps([...turnsOf(ahead), ...turnsOf(behind), { ...half, left: killed }])).toEqual([]);
  // Whatever the hosts' clocks show: about when the row's stamp passes, by either rule, and never a second lease later.
  const stamp = lastStampOf("ahead", arrivals);
  const takeover = arrivals.find(({ request, wall }) => isTake("behind", request) && wall > killedAt);
  const lateBy = (takeover?.wall ?? Number.POSITIVE_INFINITY) - stamp;
  expect(lateBy).toBeLessThan(TTL_MS);
  // A stamp lies at most the width of the bounds later than the lease that a watcher waits for.
  expect(lateBy).toBeGreaterThan(-1_500);
});

test.each([HOUR, -HOUR])(
  "on a host that is %d ms ahead the bounds are a second wide at first, and under 300 ms from the tenth reply on",
  async (wrongByMs) => {
    const clock = tableClockOnWrongHost(wrongByMs);
    const client = testClient({ endpoint: proxy.endpointFor("clock") });
    await using locks = new LockTable({ tableName, client, clock });
    const widths: number[] = [];
    let slowest = 0;
    for (let reply = 0; reply < 24; reply += 1) {
      const sentAt = performance.now();
      await locks.mutex("any").inspect();
      slowest = Math.max(slowest, performance.now() - sentAt);
      const bounds = clock.wall() ?? { earliest: 0, latest: Number.POSITIVE_INFINITY };
      widths.push(bounds.latest - bounds.earliest);
      // The table's own clock, which on this machine is ours: the bounds hold it.
      const shown = Date.now();
      expect(bounds.earliest).toBeLessThanOrEqual(shown);
      expect(bounds.latest + slowest + 10).toBeGreaterThanOrEqual(shown);
      // So that the replies come from all parts of a second.
      await new Promise((resolve) => setTimeout(resolve, 97));
    }
    // A slow machine answers late, and every bound is as wide as the answer is late.
    expect(widths[0]).toBeLessThanOrEqual(1_001 + slowest);
    expect(widths.slice(10).every((width) => width <= 300 + slowest)).toBe(true);
  },
);

function turnsOf({ messages }: Host<CounterMessage>): CounterMessage[] {
  return messages.filter(({ kind }) => kind === "turn");
}

function isTake(client: string, { client: sender, operation, table }: Arrival["request"]): boolean {
  return sender === client && operation === "PutItem" && table?.status === 200;
}

/** Until when the row said that it was this host's. */
function lastStampOf(client: string, arrivals: readonly Arrival[]): number {
  const stamps = arrivals
    .filter(({ request }) => request.client === client && request.table?.status === 200)
    .map(({ request: { body } }) => body.ExpressionAttributeValues?.[":expires"]?.N ?? body.Item?.expires?.N)
    .filter((stamp) => stamp !== undefined);
  return Number(stamps.at(-1));
}
