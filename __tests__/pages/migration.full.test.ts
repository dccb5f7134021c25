import { setTimeout as sleep } from "node:timers/promises";
import { CreateTableCommand } from "@aws-sdk/client-dynamodb";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { LockTable } from "dynamutex";
import { Desk } from "../support/desk.js";
import { testEndpoint } from "../support/endpoint.js";
import { type RecordedRequest, startFaultProxy, status500 } from "../support/fault-proxy.js";
import { JavaLockClient } from "../support/java-lock-client.js";
import { type PagePrograms, pagePrograms } from "../support/page-programs.js";
import type { RunningProgram } from "../support/running-program.js";
import { nameTestTable, testClient } from "../support/table.js";

/** The reader's program: it works until the test answers, and says how that ended. */
const MAIN = `
import { exclusively } from "./bridge.js";
import { withOldLock } from "./old-lock.js";

const { DESK, NAME = "" } = process.env;
const work = async (signal: AbortSignal) => {
  await fetch(DESK + "/work", { method: "POST", signal });
  return "worked";
};
const told = await exclusively(NAME, work, withOldLock).catch((error) => "failed: " + error.message);
console.log(told);
process.exit();
`;

/** A quarter of it bounds each request, also where the machine is busy. */
const LEASE_MS = 6_000;

const client = testClient();
const TableName = nameTestTable();
let programs: PagePrograms;
let locks: LockTable;

beforeAll(async () => {
  const only = ["bridge.ts", "old-lock.ts"];
  programs = await pagePrograms({
    pages: ["docs/guides/migration.md", "docs/guides/from-dynamodb-lock-clients.md"],
    only,
    given: { "main.ts": MAIN },
  });
  locks = new LockTable({ tableName: programs.tableName, client });
  // createLockTableInDynamoDB, without a sort key
  const KeySchema = [{ AttributeName: "key", KeyType: "HASH" as const }];
  const AttributeDefinitions = [{ AttributeName: "key", AttributeType: "S" as const }];
  await client.send(
    new CreateTableCommand({ TableName, KeySchema, AttributeDefinitions, BillingMode: "PAY_PER_REQUEST" }),
  );
});

afterAll(async () => {
  await locks.close();
  await programs[Symbol.asyncDispose]();
});

function javaClient(key: string, leaseDuration = String(LEASE_MS)): JavaLockClient {
  return new JavaLockClient({ client, TableName, key, ownerName: "java", leaseDuration });
}

function bridge(
  name: string,
  desk: string,
  { lease = String(LEASE_MS), endpoint = testEndpoint() }: { readonly lease?: string; readonly endpoint?: string } = {},
): RunningProgram {
  const env = { NAME: name, DESK: desk, OLD_TABLE: TableName, OLD_LEASE: lease };
  return programs.start("main.js", { ...env, AWS_ENDPOINT_URL_DYNAMODB: endpoint });
}

/** For what another process does to the row. Jest's own timeout bounds it. */
async function until(condition: () => Promise<boolean>): Promise<void> {
  while (!(await condition())) await sleep(20);
}

test.each([
  { how: "deletes its row", end: (java: JavaLockClient) => java.delete(), lease: "6000" },
  { how: "marks it as released", end: (java: JavaLockClient) => java.release(), lease: "6000" },
  { how: "in Go, marks it as released", end: (java: JavaLockClient) => java.release(), lease: "6s" },
])(
  "the bridge waits while an old process sends heartbeats, and has both locks when that $how",
  async ({ how, end, lease }) => {
    await using desk = new Desk();
    const java = javaClient(how, lease);
    expect(await java.takeNew()).toBe(true);
    await using program = bridge(how, await desk.start(), { lease });
    for (let beat = 0; beat < 5; beat++) {
      await sleep(LEASE_MS / 4);
      expect(await java.heartbeat()).toBe(true);
    }
    expect(desk.asked).toEqual([]); // one and a quarter of a lease long
    expect(await end(java)).toBe(true);
    await desk.hears("POST /work");
    expect((await java.row())?.leaseDuration).toEqual({ S: lease });
    expect(await locks.mutex(how).inspect()).toMatchObject({ kind: "mutex", handedOff: false });
    await desk.answer("POST /work");
    await program.exit;
    expect(program.lines).toEqual(["worked"]);
  },
);

test("while the bridge works, no old process gets the row, and afterwards one does, with its data", async () => {
  await using desk = new Desk();
  const java = javaClient("held");
  await java.takeNew();
  await java.release();
  await using program = bridge("held", await desk.start());
  await desk.hears("POST /work");
  const before = (await java.row())?.recordVersionNumber?.S ?? "";
  expect([await java.takeNew(), await java.takeReleased()]).toEqual([false, false]);
  // A process of Java's that saw the row for a whole lease finds another version on it.
  await until(async () => (await java.row())?.recordVersionNumber?.S !== before);
  expect(await java.takeExpired(before)).toBe(false);
  await desk.answer("POST /work");
  await program.exit;
  expect(program.lines).toEqual(["worked"]);
  expect((await java.row())?.data?.B).toEqual(new TextEncoder().encode("theirs"));
  expect(await java.takeReleased()).toBe(true);
});

test("the bridge takes over from an old process that has died, a lease after it first saw its row", async () => {
  await using desk = new Desk();
  const java = javaClient("dead");
  await java.takeNew();
  await using program = bridge("dead", await desk.start());
  await desk.answer("POST /work");
  await program.exit;
  expect(program.lines).toEqual(["worked"]);
});

test("the work is aborted when an old process has taken the row over", async () => {
  await using desk = new Desk();
  const java = javaClient("lost");
  await using program = bridge("lost", await desk.start());
  await desk.hears("POST /work");
  // As if the bridge had been frozen for a lease.
  await until(async () => java.takeExpired((await java.row())?.recordVersionNumber?.S ?? ""));
  await program.exit;
  expect(program.lines).toEqual([expect.stringMatching(/^failed: .*old lock lost was lost/)]);
  expect((await java.row())?.ownerName).toEqual({ S: "java" });
});

test("the bridge keeps the row when the replies to its take and to a heartbeat are lost", async () => {
  await using proxy = await startFaultProxy({ target: testEndpoint() });
  const isWrite = ({ operation, body }: RecordedRequest) => operation === "UpdateItem" && body.TableName === TableName;
  const take = proxy.on(isWrite, status500({ applied: true }));
  await using desk = new Desk();
  const java = javaClient("unanswered");
  await using program = bridge("unanswered", await desk.start(), { endpoint: proxy.endpoint });
  await desk.hears("POST /work");
  await take.done;
  // As often as the SDK tries.
  await proxy.on(isWrite, status500({ applied: true }), { times: 3 }).done;
  const unanswered = (await java.row())?.recordVersionNumber?.S;
  await until(async () => (await java.row())?.recordVersionNumber?.S !== unanswered);
  await desk.answer("POST /work");
  await program.exit;
  expect(program.lines).toEqual(["worked"]);
});
