import { CreateTableCommand, DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { describe, expect, test } from "@jest/globals";
import { startDynamoDbLocal } from "../examples/support/dynamodb-local.js";
import type { KeeperConfig, KeeperReport } from "./load/hosts/keeper.js";
import { startFaultProxy } from "./support/fault-proxy.js";
import { startLockHost } from "./support/lock-host.js";
import { createTestTable, testClientConfig, testEndpoint } from "./support/table.js";
import { tableInput } from "./support/table-input.js";

/** How often each is run: `LOAD_RUNS=10` for more than once. */
const RUNS = Number(process.env.LOAD_RUNS ?? 1);
const LONG_MS = 60_000 * (RUNS + 1);

/** A process of its own that keeps locks, with the client that the library makes. */
async function keep(endpoint: string, config: KeeperConfig): Promise<KeeperReport> {
  await using host = startLockHost<KeeperReport & { readonly [field: string]: unknown }>(
    new URL("./load/hosts/keeper.js", import.meta.url),
    { endpoint, config },
  );
  const kept = await host.message((message): message is typeof message => message.kind === "kept");
  if (process.env.LOAD_RUNS !== undefined) process.stderr.write(`${JSON.stringify(kept)}\n`);
  return kept;
}

async function repeatedly(run: () => Promise<KeeperReport>, expected: Partial<KeeperReport>): Promise<void> {
  for (let index = 0; index < RUNS; index += 1) {
    expect(await run()).toMatchObject({ lost: 0, failures: [], ...expected });
  }
}

describe("3 000 calls at once of a process that holds 50 locks of 5 s are served, and none of the 50 is lost", () => {
  test.each([3_000, 30])(
    "for %i names",
    async (names) => {
      const burst = { calls: 3_000, names };
      await repeatedly(
        async () => {
          const tableName = await createTestTable();
          return await keep(testEndpoint(), {
            tableName,
            ttlMs: 5_000,
            locks: 50,
            takenAtOnce: 50,
            keepMs: 2_500,
            burst,
          });
        },
        { taken: 50, served: 3_000 },
      );
    },
    LONG_MS,
  );
});

test(
  "500 locks of 3 s, taken 32 at a time by a new process on a new engine, are kept",
  async () => {
    await repeatedly(
      async () => {
        await using engine = await startDynamoDbLocal();
        const { endpoint } = engine;
        const tableName = "new-table";
        const client = new DynamoDBClient({ ...testClientConfig(), endpoint });
        await client.send(new CreateTableCommand(tableInput(tableName)));
        client.destroy();
        return await keep(endpoint, { tableName, ttlMs: 3_000, locks: 500, takenAtOnce: 32, keepMs: 6_000 });
      },
      { taken: 500 },
    );
  },
  LONG_MS,
);

test(
  "700 locks of 6 s are kept on a table that is 300 ms away",
  async () => {
    await repeatedly(
      async () => {
        const tableName = await createTestTable();
        await using proxy = await startFaultProxy({ target: testEndpoint() });
        proxy.latency({ requestMs: 150, replyMs: 150 });
        return await keep(proxy.endpoint, { tableName, ttlMs: 6_000, locks: 700, takenAtOnce: 700, keepMs: 9_000 });
      },
      { taken: 700 },
    );
  },
  LONG_MS,
);
