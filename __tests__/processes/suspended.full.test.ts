import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, expect, test } from "@jest/globals";
import { LockTable } from "../../lib/index.js";
import { type FaultProxy, startFaultProxy } from "../support/fault-proxy.js";
import { startLockHost } from "../support/lock-host.js";
import { createTestTable, testClient, testEndpoint } from "../support/table.js";
import type { SleeperConfig } from "./hosts/sleeper.js";

let proxy: FaultProxy;
let tableName: string;

beforeEach(async () => {
  tableName = await createTestTable();
  proxy = await startFaultProxy({ target: testEndpoint() });
});

afterEach(() => proxy.close());

test.each<Pick<SleeperConfig, "section">>([{ section: "busy" }, { section: "awaiting" }])(
  "a holder suspended past its lease ($section) knows in its first line after waking, and leaves the next holder alone",
  async ({ section }) => {
    const mutex = { ttlMs: 2_000 };
    const gapMs = mutex.ttlMs;
    await using sleeper = startLockHost(new URL("./hosts/sleeper.js", import.meta.url), {
      endpoint: proxy.endpointFor("sleeper"),
      config: { tableName, mutex, section, gapMs } satisfies SleeperConfig,
    });
    await sleeper.message(({ kind }) => kind === "held");
    await sleeper.suspend();
    const atLeastAGap = sleep(gapMs * 1.1);

    await using locks = new LockTable({ tableName, client: testClient({ endpoint: proxy.endpointFor("next") }) });
    const lock = await locks.mutex("job", { ttlMs: 10_000, renewEveryMs: 500 }).lock();
    await atLeastAGap;
    expect(lock.held).toBe(true);
    proxy.reset();
    sleeper.resume();

    expect(await sleeper.message(({ kind }) => kind === "woke")).toMatchObject({
      held: false,
      aborted: true,
      remainingMs: 0,
    });
    expect(await sleeper.message(({ kind }) => kind === "unlocked")).toMatchObject({
      error: "LockLostError",
      reason: "expired",
      isSignalReason: true,
    });
    expect(await sleeper.exit).toEqual({ code: 0, signal: null });

    // Whatever it wrote after waking, the table refused.
    const wrote = proxy.select({ client: "sleeper", operation: (operation) => operation !== "GetItem" });
    expect(wrote.filter(({ table }) => table?.status !== 400)).toEqual([]);
    await lock.extend();
    expect(lock.held).toBe(true);
    await lock.unlock();
  },
);
