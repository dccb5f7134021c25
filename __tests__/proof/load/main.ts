import { parseArgs } from "node:util";
import { CreateTableCommand, DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { startDynamoDbLocal } from "../../../examples/support/dynamodb-local.js";
import { testClientConfig } from "../../support/endpoint.js";
import { startFaultProxy } from "../../support/fault-proxy.js";
import type { HostMessage } from "../../support/host-process.js";
import { startLockHost } from "../../support/lock-host.js";
import { tableInput } from "../../support/table-input.js";
import type { KeeperConfig, KeeperReport } from "./hosts/keeper.js";

interface Scenario {
  readonly title: string;
  readonly distanceMs?: number;
  readonly keeper: Omit<KeeperConfig, "tableName">;
}

const HOLDER = { ttlMs: 5_000, locks: 50, takenAtOnce: 50, keepMs: 2_500 };

const SCENARIOS: Readonly<Record<string, Scenario>> = {
  names: {
    title: "50 locks of 5 s, and 3 000 calls at once for as many names",
    keeper: { ...HOLDER, burst: { calls: 3_000, names: 3_000 } },
  },
  few: {
    title: "50 locks of 5 s, and 3 000 calls at once for 30 names",
    keeper: { ...HOLDER, burst: { calls: 3_000, names: 30 } },
  },
  many: {
    title: "500 locks of 3 s, taken 32 at a time",
    keeper: { ttlMs: 3_000, locks: 500, takenAtOnce: 32, keepMs: 6_000 },
  },
  far: {
    title: "700 locks of 6 s, on a table that is 300 ms away",
    distanceMs: 300,
    keeper: { ttlMs: 6_000, locks: 700, takenAtOnce: 700, keepMs: 9_000 },
  },
};

const HELP = `npm run proof -- load [--runs 10] [--only ${Object.keys(SCENARIOS).join(",")}]`;

const { values } = parseArgs({ options: { runs: { type: "string" }, only: { type: "string" } } });
const runs = Number(values.runs ?? 10);
const chosen = (values.only?.split(",") ?? Object.keys(SCENARIOS)).map((name) => SCENARIOS[name]);
if (!(runs > 0)) throw new Error(HELP);
for (const scenario of chosen) {
  if (scenario === undefined) throw new Error(HELP);
  console.log(scenario.title);
  for (let run = 1; run <= runs; run += 1) {
    const { taken, lost, served, failures, figures } = await keepOnNewEngine(scenario);
    const { locks, burst } = scenario.keeper;
    const isFine = lost === 0 && failures.length === 0 && taken === locks && served === (burst?.calls ?? 0);
    if (!isFine) process.exitCode = 1;
    console.log(`  ${isFine ? "kept" : `LOST ${lost}, failed ${failures.length}`} ${JSON.stringify(figures)}`);
    for (const failure of new Set(failures.slice(0, 5))) console.log(`    ${failure}`);
  }
}

/** A new process with the client that the library makes, on an engine that has just been started. */
async function keepOnNewEngine({ keeper, distanceMs = 0 }: Scenario): Promise<KeeperReport> {
  await using engine = await startDynamoDbLocal();
  process.env.DYNAMODB_ENDPOINT = engine.endpoint;
  const client = new DynamoDBClient(testClientConfig());
  const tableName = "new-table";
  await client.send(new CreateTableCommand(tableInput(tableName)));
  client.destroy();
  await using proxy = distanceMs === 0 ? undefined : await startFaultProxy({ target: engine.endpoint });
  if (proxy !== undefined) proxy.latencyMs = distanceMs;
  await using host = startLockHost<KeeperReport & HostMessage>(new URL("./hosts/keeper.js", import.meta.url), {
    endpoint: proxy?.endpoint ?? engine.endpoint,
    config: { ...keeper, tableName },
  });
  return await host.message((message): message is typeof message => message.kind === "kept");
}
