import { expect, test } from "@jest/globals";
import type { Host } from "../support/host-process.js";
import { startLockHost } from "../support/lock-host.js";
import { now } from "../support/monotonic.js";
import { createTestTable, testClient, testEndpoint } from "../support/table.js";
import { overlaps, readCounter } from "./counter-row.js";
import type { CounterConfig, CounterMessage } from "./hosts/counter.js";

const client = testClient();
const TURNS = 50;
const HOUR = 60 * 60 * 1_000;

test("4 processes x 50 increments end at 200, with clocks that are hours apart, one of them killed in the middle of a turn, which is redone", async () => {
  const tableName = await createTestTable();
  const start = (config: Pick<CounterConfig, "turns" | "stayIn" | "wrongByMs">): Host<CounterMessage> =>
    startLockHost<CounterMessage>(new URL("./hosts/counter.js", import.meta.url), {
      endpoint: testEndpoint(),
      config: { tableName, mutex: { ttlMs: 5_000, poll: { minMs: 5, maxMs: 20 } }, ...config } satisfies CounterConfig,
    });
  await using victim = start({ turns: TURNS, stayIn: 10 });
  await using one = start({ turns: TURNS, wrongByMs: HOUR });
  await using two = start({ turns: TURNS, wrongByMs: -HOUR });
  await using three = start({ turns: TURNS });

  const half = await victim.message(({ kind }) => kind === "staying");
  const killed = now();
  victim.kill("SIGKILL");
  await victim.exit;
  const done = victim.messages.filter(({ kind }) => kind === "turn").length;
  await using successor = start({ turns: TURNS - done });
  const survivors = [one, two, three, successor];
  for (const host of survivors) expect({ ...(await host.exit), stderr: host.stderr }).toMatchObject({ code: 0 });

  const turns = [victim, ...survivors].flatMap(({ messages }) => messages.filter(({ kind }) => kind === "turn"));
  // Every increment saw a value of its own: no update was lost.
  expect(turns.map(({ read }) => read).sort((a, b) => a - b)).toEqual([...Array(4 * TURNS).keys()]);
  expect(await readCounter(client, tableName)).toBe(4 * TURNS);
  expect(overlaps([...turns, { ...half, left: killed }])).toEqual([]);
  // The turn that was cut off was the lock's until the kill: whoever came next read what it had read.
  expect(turns.find(({ read }) => read === half.read)?.entered).toBeGreaterThan(killed);
}, 180_000);
