import { ScanCommand } from "@aws-sdk/client-dynamodb";
import { expect, test } from "@jest/globals";
import { LockTable } from "../../../lib/index.js";
import { watch } from "../../support/eventually.js";
import { IS_FULL } from "../../support/full.js";
import { startLockHost } from "../../support/lock-host.js";
import { createTestTable, testClient, testEndpoint } from "../../support/table.js";
import type { HolderConfig } from "./hosts/holder.js";
import { KINDS, type Kind, LEASE } from "./kinds.js";

const client = testClient();

const PLAYED: readonly Kind[] = IS_FULL ? (Object.keys(KINDS) as Kind[]) : ["mutex"];

test.concurrent.each(PLAYED)(
  "%s: a waiter gets it from a killed process when the lease of that is over, and not before",
  async (kind) => {
    const tableName = await createTestTable();
    const config: HolderConfig = { tableName, kind };
    await using holder = startLockHost(new URL("./hosts/holder.js", import.meta.url), {
      endpoint: testEndpoint(),
      config,
    });
    await holder.message((message) => message.kind === "held");
    await using locks = new LockTable({ tableName, client, owner: "waiter", ...LEASE });
    const [, ask] = KINDS[kind];
    const waiting = ask(locks);
    const watched = watch(waiting);
    // It is renewed, and nobody else has it.
    let renewedAfter = performance.now();
    const first = await stamp(tableName);
    for (let askedAt = performance.now(); (await stamp(tableName)) === first; askedAt = performance.now()) {
      renewedAfter = askedAt;
    }
    expect([watched.settled, holder.running]).toEqual([false, true]);
    holder.kill("SIGKILL");
    const lock = await waiting;
    // By the time or by watching: a whole lease after the last renewal.
    expect(performance.now() - renewedAfter).toBeGreaterThanOrEqual(LEASE.ttlMs);
    await lock.unlock();
  },
);

test.concurrent("several permits of a process that is killed before their first renewal end by themselves, and none is left", async () => {
  const tableName = await createTestTable();
  const config: HolderConfig = { tableName, kind: "several permits", renewEveryMs: 2_000 };
  await using holder = startLockHost(new URL("./hosts/holder.js", import.meta.url), {
    endpoint: testEndpoint(),
    config,
  });
  await holder.message((message) => message.kind === "held");
  holder.kill("SIGKILL");
  const rows = await rowsIn(tableName);
  expect(rows.map(({ owner }) => owner?.S)).toEqual(["holder", "holder", "holder"]);
  await using locks = new LockTable({ tableName, client, owner: "waiter", ...LEASE });
  const semaphore = locks.semaphore("name", { permits: 3 });
  expect(await semaphore.tryLock()).toBeNull();
  // Nothing was renewed.
  expect(await rowsIn(tableName)).toEqual(rows);
  const lock = await semaphore.lock({ permits: 3 });
  expect((await rowsIn(tableName)).map(({ owner }) => owner?.S)).toEqual(["waiter", "waiter", "waiter"]);
  await lock.unlock();
  expect(await rowsIn(tableName)).toEqual([]);
});

/** Until when the process that holds says so. */
async function stamp(tableName: string): Promise<string | undefined> {
  return (await rowsIn(tableName)).find(({ owner }) => owner?.S === "holder")?.expires?.N;
}

async function rowsIn(tableName: string) {
  const { Items = [] } = await client.send(new ScanCommand({ TableName: tableName, ConsistentRead: true }));
  return Items;
}
