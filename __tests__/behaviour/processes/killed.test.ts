import { ScanCommand } from "@aws-sdk/client-dynamodb";
import { expect, test } from "@jest/globals";
import { LockTable } from "../../../lib/index.js";
import { watch } from "../../support/eventually.js";
import { startLockHost } from "../../support/lock-host.js";
import { createTestTable, testClient, testEndpoint } from "../../support/table.js";
import type { HolderConfig } from "./hosts/holder.js";
import { KINDS, type Kind, LEASE } from "./kinds.js";

const client = testClient();

test.concurrent.each(Object.keys(KINDS) as Kind[])(
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

/** Until when the process that holds says so. */
async function stamp(tableName: string): Promise<string | undefined> {
  const { Items = [] } = await client.send(new ScanCommand({ TableName: tableName, ConsistentRead: true }));
  return Items.find(({ owner }) => owner?.S === "holder")?.expires?.N;
}
