import { DeleteItemCommand, GetItemCommand } from "@aws-sdk/client-dynamodb";
import { afterEach, beforeEach, expect, test } from "@jest/globals";
import { type Lock, LockTable } from "../../../lib/index.js";
import { type FaultProxy, startFaultProxy } from "../../support/fault-proxy.js";
import type { Host } from "../../support/host-process.js";
import { startLockHost } from "../../support/lock-host.js";
import { createTestTable, testClient, testEndpoint } from "../../support/table.js";
import type { Ending, LeaverConfig } from "./hosts/leaver.js";

const client = testClient();
let tableName: string;
let proxy: FaultProxy;
let locks: LockTable;
let taken: Lock;

beforeEach(async () => {
  tableName = await createTestTable();
  proxy = await startFaultProxy({ target: testEndpoint() });
  locks = new LockTable({ tableName, client });
  taken = await locks.mutex("taken").lock();
});

afterEach(async () => {
  await taken.unlock();
  await locks.close();
  await proxy.close();
});

/** Leases are long here, so that no program ends only because its lease does. */
function startLeaver(ending: Ending): Host {
  return startLockHost(new URL("./hosts/leaver.js", import.meta.url), {
    endpoint: proxy.endpointFor("leaver"),
    config: { tableName, mutex: { ttlMs: 60_000, poll: { minMs: 20, maxMs: 50 } }, ending } satisfies LeaverConfig,
  });
}

/** Its last line is done, nothing keeps it, and nobody was left with a rejection. */
async function expectToLeave(host: Host): Promise<void> {
  const exit = await host.exit;
  expect({ ...exit, stderr: host.stderr }).toEqual({
    code: 0,
    signal: null,
    stderr: expect.not.stringMatching(/reject/i),
  });
  const at = (kind: string): number => Number(host.messages.find((message) => message.kind === kind)?.at);
  // The shortest of what could keep it is 10 s.
  expect(at("exit") - at("done")).toBeLessThan(5_000);
}

test.each<{ ending: Ending; messages?: readonly unknown[] }>([
  { ending: "holding a lock" },
  { ending: "holding a lock whose signal somebody listens to" },
  { ending: "after a section of several renewals" },
  { ending: "after a close that waited for its section", messages: [{ kind: "revoked", reason: "closed" }] },
  { ending: "after a tryLock that found the lock taken" },
  { ending: "after a wait that timed out", messages: [{ kind: "waited", error: "LockTimeoutError" }] },
  {
    ending: "after a wait behind a section of its own that timed out",
    messages: [{ kind: "waited", error: "LockTimeoutError" }],
  },
  { ending: "after a wait that was aborted", messages: [{ kind: "waited", error: "enough" }] },
  { ending: "after a close that ended a wait", messages: [{ kind: "waited", error: "LockError" }] },
])("a process exits by itself $ending", async ({ ending, messages = [] }) => {
  await using host = startLeaver(ending);
  await expectToLeave(host);
  expect(host.messages.slice(0, -2)).toEqual(messages);
});

test("a section that outlives the close deletes its row, and then the process exits by itself", async () => {
  await using host = startLeaver("after a section that outlived the close");
  await expectToLeave(host);
  expect(host.messages[0]).toEqual({ kind: "unlocked", reason: "closed" });
  const { Item } = await client.send(
    new GetItemCommand({ TableName: tableName, Key: { name: { S: "free" }, sort: { S: "lock" } } }),
  );
  expect(Item).toBeUndefined();
});

test("trap 15: a process exits by itself after its row was deleted, though nobody handles the loss", async () => {
  await using host = startLeaver("after its row was deleted");
  await host.message(({ kind }) => kind === "held");
  await client.send(new DeleteItemCommand({ TableName: tableName, Key: { name: { S: "free" }, sort: { S: "lock" } } }));
  await expectToLeave(host);
  expect(host.messages).toContainEqual({ kind: "lost", reason: "deleted" });
});

test("a process exits by itself after the table was out of reach, with renewals that nobody answers", async () => {
  await using host = startLeaver("after the table was out of reach");
  await host.message(({ kind }) => kind === "held");
  proxy.partition("leaver");
  await expectToLeave(host);
  expect(host.messages).toContainEqual({ kind: "lost", reason: "expired" });
});

test("trap 15: a process stays while a call waits for a lock, and exits by itself when that is done", async () => {
  await using host = startLeaver("waiting for a lock");
  await proxy.until(() => proxy.count({ client: "leaver", operation: "GetItem" }) >= 20);
  expect(host.running).toBe(true);
  expect(host.messages).toEqual([]);
  await taken.unlock();
  await expectToLeave(host);
  expect(host.messages[0]).toEqual({ kind: "held" });
});
