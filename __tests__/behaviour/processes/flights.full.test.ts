import { expect, test } from "@jest/globals";
import type { Host } from "../../support/host-process.js";
import { startLockHost } from "../../support/lock-host.js";
import { createTestTable, testEndpoint } from "../../support/table.js";
import type { FlyerConfig } from "./hosts/flyer.js";

const PROCESSES = 8;

async function start(tableName: string, workMs: number): Promise<Host> {
  const config: FlyerConfig = { tableName, workMs };
  return startLockHost(new URL("./hosts/flyer.js", import.meta.url), { endpoint: testEndpoint(), config });
}

/** What the calls of these processes have got, and who has run. */
async function endOf(hosts: readonly Host[]) {
  const messages = await Promise.all(hosts.map((host) => host.message(({ kind }) => kind === "results")));
  await Promise.all(hosts.map((host) => host.exit));
  const flights = hosts.flatMap((host) => host.messages.filter(({ kind }) => kind === "flies").map(() => host.pid));
  return {
    flights,
    results: messages.flatMap(({ results }) => results as number[]),
    writes: messages.map(({ writes }) => writes as Record<string, number>),
  };
}

const sum = (counts: readonly Record<string, number>[], name: string): number =>
  counts.reduce((total, count) => total + (count[name] ?? 0), 0);

test("8 processes with 8 callers each have one flight, of three writes", async () => {
  const tableName = await createTestTable();
  const hosts = await Promise.all(Array.from({ length: PROCESSES }, () => start(tableName, 2_000)));
  const { flights, results, writes } = await endOf(hosts);
  expect(flights).toHaveLength(1);
  expect(results).toEqual(Array.from({ length: PROCESSES * 8 }, () => flights[0]));
  expect(["take", "put-result", "release"].map((name) => sum(writes, name))).toEqual([1, 1, 1]);
});

test("a process that is killed in the middle of its flight leaves no result, and one of the others flies", async () => {
  const tableName = await createTestTable();
  await using first = await start(tableName, 2 ** 30);
  await first.message(({ kind }) => kind === "flies");
  const hosts = await Promise.all(Array.from({ length: 3 }, () => start(tableName, 500)));
  first.kill("SIGKILL");
  const { flights, results } = await endOf(hosts);
  expect(flights).toHaveLength(1);
  expect(results).toEqual(Array.from({ length: 3 * 8 }, () => flights[0]));
});
