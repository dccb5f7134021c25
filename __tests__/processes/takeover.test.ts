import { afterEach, beforeEach, expect, test } from "@jest/globals";
import { LockTable, type MutexOptions } from "../../lib/index.js";
import { type FaultProxy, type RecordedRequest, startFaultProxy } from "../support/fault-proxy.js";
import type { Host } from "../support/host-process.js";
import { startLockHost } from "../support/lock-host.js";
import { createTestTable, testClient, testEndpoint } from "../support/table.js";
import { wrongClock } from "../support/wrong-clock.js";
import { noteArrivals } from "./arrivals.js";
import type { HolderConfig } from "./hosts/holder.js";

const HOUR = 60 * 60 * 1_000;

let proxy: FaultProxy;
let tableName: string;

beforeEach(async () => {
  tableName = await createTestTable();
  proxy = await startFaultProxy({ target: testEndpoint() });
});

afterEach(() => proxy.close());

function startHolder(name: string, mutex: MutexOptions, clockWrongByMs = 0): Host {
  return startLockHost(new URL("./hosts/holder.js", import.meta.url), {
    endpoint: proxy.endpointFor(`holder of ${name}`),
    config: { tableName, name, mutex, clockWrongByMs } satisfies HolderConfig,
  });
}

/** The locks of this process, which has the right time. */
function waitingTable(name: string, mutex: MutexOptions): LockTable {
  const client = testClient({ endpoint: proxy.endpointFor(`waiter for ${name}`) });
  return new LockTable({ tableName, client, ...mutex, clock: wrongClock(0) });
}

test("a waiter of a killed holder has the lock no later than the lease's end plus one poll", async () => {
  const mutex = { ttlMs: 2_000, renewEveryMs: 250, poll: { minMs: 50, maxMs: 400 } };
  await using holder = startHolder("job", mutex);
  await holder.message(({ kind }) => kind === "held");
  const arrivals = noteArrivals(proxy);
  await using locks = waitingTable("job", mutex);
  const waiting = locks.mutex("job").lock();
  await proxy.until(() => applied("UpdateItem", "job").length > 0 && polls("job").length > 2);
  holder.kill("SIGKILL");
  await using lock = await waiting;
  const lockedAt = Date.now();

  const leaseEnd = lastStamp("job");
  const late = arrivals.filter(({ request, wall }) => request.client === "waiter for job" && wall > leaseEnd);
  expect(late.at(-1)?.request.operation).toBe("PutItem");
  // The first poll after the end showed a row that was free, and one may have been on its way before.
  expect(late.filter(({ request }) => request.operation === "GetItem").length).toBeLessThanOrEqual(2);
  expect(lock.held).toBe(true);
  expect(lockedAt).toBeGreaterThan(leaseEnd);
  // Far more than two requests take, and far less than a second lease.
  expect(lockedAt - leaseEnd).toBeLessThan(mutex.ttlMs);
});

test.each([
  { title: "an hour fast", wrongBy: HOUR },
  { title: "an hour slow", wrongBy: -HOUR },
])(
  "a waiter that only watches takes over from a killed holder whose clock is $title, and not before",
  async ({ title, wrongBy }) => {
    // Renewals in quick succession, so that a holder that gets no processor for a second is still alive.
    const renewEveryMs = 250;
    const mutex: MutexOptions = { ttlMs: 2_500, renewEveryMs, poll: { minMs: 50, maxMs: 400 }, takeover: "unchanged" };
    await using holder = startHolder(title, mutex, wrongBy);
    const { uuid } = await holder.message(({ kind }) => kind === "held");
    const arrivals = noteArrivals(proxy);
    await using locks = waitingTable(title, mutex);
    const waiting = locks.mutex(title).lock();
    // Alive for three leases.
    await proxy.until(() => applied("UpdateItem", title).length >= 30);
    expect(holder.messages.map(({ kind }) => kind)).toEqual(["held"]);
    expect(applied("PutItem", title)).toEqual([]);
    holder.kill("SIGKILL");
    await using lock = await waiting;

    expect(lock.held).toBe(true);
    const stamp = lastStamp(title);
    expect(Math.abs(stamp - Date.now() - wrongBy)).toBeLessThan(HOUR / 2);
    const [take] = applied("PutItem", title);
    // The very lease that was watched is the one that the write replaced.
    const { ":if_seenUuid": seenUuid, ":if_seenExpires": seenExpires } = take?.body.ExpressionAttributeValues ?? {};
    expect([seenUuid?.S, Number(seenExpires?.N)]).toEqual([uuid, stamp]);
    // Between the arrival of the poll that first showed the last stamp, and that of the write, lies the row's whole ttl.
    const shown = arrivals.find(({ request }) => request.response?.Item?.expires?.N === String(stamp));
    const taken = arrivals.find(({ request }) => request === take);
    expect((taken?.stopwatch ?? 0) - (shown?.stopwatch ?? 0)).toBeGreaterThanOrEqual(mutex.ttlMs as number);
    // The waiter slept until then and not beyond: one more look, and the write.
    const since = arrivals.filter(({ stopwatch }) => stopwatch > (shown?.stopwatch ?? 0) + (mutex.ttlMs as number));
    expect(since.length).toBeLessThanOrEqual(3);
  },
);

function polls(name: string): RecordedRequest[] {
  return proxy.select({ client: `waiter for ${name}`, operation: "GetItem" });
}

/** Writes that the table took: the holder's renewals, the waiter's puts. */
function applied(operation: "PutItem" | "UpdateItem", name: string): RecordedRequest[] {
  const client = operation === "PutItem" ? `waiter for ${name}` : `holder of ${name}`;
  return proxy.select({ client, operation, where: ({ table }) => table?.status === 200 });
}

/** The holder's last word. */
function lastStamp(name: string): number {
  return Number(applied("UpdateItem", name).at(-1)?.body.ExpressionAttributeValues?.[":expires"]?.N);
}
