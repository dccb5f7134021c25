import { DeleteItemCommand } from "@aws-sdk/client-dynamodb";
import { expect, test } from "@jest/globals";
import { eventually } from "../support/eventually.js";
import { startFaultProxy } from "../support/fault-proxy.js";
import type { Host } from "../support/host-process.js";
import { startLockHost } from "../support/lock-host.js";
import { createTestTable, testClient, testEndpoint } from "../support/table.js";
import type { TakerConfig, TakerMessage } from "./hosts/taker.js";
import type { WriterConfig } from "./hosts/writer.js";
import { TokenCheckingStorage } from "./storage.js";

const client = testClient();
const MUTEX = { ttlMs: 1_000, poll: { minMs: 5, maxMs: 20 } };
const KEY = { name: { S: "job" }, sort: { S: "lock" } };

test("trap 10: 200 tokens of 4 processes grow in the order of holding, through kills, plain use and a deleted row", async () => {
  const tableName = await createTestTable();
  await using proxy = await startFaultProxy({ target: testEndpoint() });
  const start = (turns: number): Host<TakerMessage> =>
    startLockHost<TakerMessage>(new URL("./hosts/taker.js", import.meta.url), {
      endpoint: proxy.endpoint,
      config: { tableName, mutex: MUTEX, turns } satisfies TakerConfig,
    });
  const all: Host<TakerMessage>[] = [];
  const held = (): TakerMessage[] => all.flatMap(({ messages }) => messages);

  /** Four processes that take the lock so often; one of them is killed in a section, and replaced. */
  async function round(turns: number): Promise<void> {
    const [victim, ...others] = [1, 2, 3, 4].map(() => start(turns)) as [Host<TakerMessage>, ...Host<TakerMessage>[]];
    all.push(victim, ...others);
    await killInSection(victim, turns / 3);
    const survivors = [...others, start(turns)];
    all.push(...survivors.slice(-1));
    for (const host of survivors) expect({ ...(await host.exit), stderr: host.stderr }).toMatchObject({ code: 0 });
  }

  await round(24);
  const before = held().length;
  // The row is deleted by hand, and the table's clock goes on by 5 s before anybody comes.
  await client.send(new DeleteItemCommand({ TableName: tableName, Key: KEY }));
  proxy.shiftDate(5_000);
  await round(24);

  const tokens = held()
    .sort((a, b) => a.at - b.at)
    .map(({ token }) => BigInt(token));
  expect(before).toBeGreaterThanOrEqual(96);
  expect(tokens.length).toBeGreaterThanOrEqual(200);
  expect(tokens.filter((token, index) => index > 0 && token <= (tokens[index - 1] as bigint))).toEqual([]);
  // Nothing but a token of a section that was killed, or never handed out, may be missing; only the deletion is a leap.
  const leaps = tokens.filter((token, index) => index > 0 && token - (tokens[index - 1] as bigint) > 100n);
  expect(leaps).toEqual([tokens[before]]);
}, 180_000);

async function killInSection(host: Host<TakerMessage>, turn: number): Promise<void> {
  await host.message(() => host.messages.length >= turn);
  await host.next();
  host.kill("SIGKILL");
  await host.exit;
}

test("a storage that checks tokens refuses every write of a holder that was frozen past its lease", async () => {
  const tableName = await createTestTable();
  await using storage = new TokenCheckingStorage();
  const url = await storage.listen();
  const start = (value: string): Host =>
    startLockHost(new URL("./hosts/writer.js", import.meta.url), {
      endpoint: testEndpoint(),
      config: { tableName, mutex: MUTEX, storage: url, value } satisfies WriterConfig,
    });
  const writesOf = (value: string) => storage.writes.filter((write) => write.value === value);

  await using frozen = start("of the frozen one");
  await frozen.message(({ kind, count }) => kind === "wrote" && Number(count) >= 3);
  await frozen.suspend();
  await using next = start("of the next one");
  await next.message(({ kind, count }) => kind === "wrote" && Number(count) >= 3);
  const before = storage.writes.length;
  frozen.resume();
  await eventually(
    () => storage.writes.slice(before).filter(({ value }) => value === "of the frozen one").length >= 20,
  );
  await frozen[Symbol.asyncDispose]();
  await next[Symbol.asyncDispose]();

  const [late, early] = [storage.writes.slice(before), storage.writes.slice(0, before)];
  expect(early.every(({ accepted }) => accepted)).toBe(true);
  expect(late.filter(({ value, accepted }) => accepted !== (value === "of the next one"))).toEqual([]);
  expect(writesOf("of the next one")[0]?.token).toBe((writesOf("of the frozen one")[0]?.token ?? 0n) + 1n);
  expect(storage.value).toBe("of the next one");
});
