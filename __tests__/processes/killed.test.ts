import { ScanCommand } from "@aws-sdk/client-dynamodb";
import { expect, test } from "@jest/globals";
import { LockTable } from "../../lib/index.js";
import { watch } from "../support/eventually.js";
import { startLockHost } from "../support/lock-host.js";
import { createTestTable, testClient, testEndpoint } from "../support/table.js";
import type { HolderConfig } from "./hosts/holder.js";
import { KINDS, type Kind, LEASE } from "./kinds.js";

const client = testClient();

test.each(Object.keys(KINDS) as Kind[])(
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
    // It is renewed for longer than its first lease, and nobody else has it.
    const first = await leaseEnd(tableName);
    let last = first;
    while (Date.now() <= first || last === first) last = await leaseEnd(tableName);
    expect([watched.settled, holder.running]).toEqual([false, true]);
    holder.kill("SIGKILL");
    await holder.exit;
    const end = Math.max(last, await leaseEnd(tableName));
    const lock = await waiting;
    expect(Date.now()).toBeGreaterThan(end);
    await lock.unlock();
  },
);

/** Until when the process that holds says so: it and the table have the clock of this machine. */
async function leaseEnd(tableName: string): Promise<number> {
  const { Items = [] } = await client.send(new ScanCommand({ TableName: tableName, ConsistentRead: true }));
  return Math.max(0, ...Items.filter(({ owner }) => owner?.S === "holder").map(({ expires }) => Number(expires?.N)));
}
