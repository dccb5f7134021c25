import { expect, test } from "@jest/globals";
import type { Host } from "../support/host-process.js";
import { startLockHost } from "../support/lock-host.js";
import { createTestTable, testEndpoint } from "../support/table.js";
import type { FlyerConfig } from "./hosts/flyer.js";

function start(tableName: string, workMs: number): Host {
  const config: FlyerConfig = { tableName, workMs };
  return startLockHost(new URL("./hosts/flyer.js", import.meta.url), { endpoint: testEndpoint(), config });
}

test("a process that is killed in the middle of its flight leaves no result, and one of the others flies for all of them", async () => {
  const tableName = await createTestTable();
  await using first = start(tableName, 2 ** 30);
  await first.message(({ kind }) => kind === "flies");
  const hosts = Array.from({ length: 3 }, () => start(tableName, 500));
  first.kill("SIGKILL");
  const messages = await Promise.all(hosts.map((host) => host.message(({ kind }) => kind === "results")));
  await Promise.all(hosts.map((host) => host.exit));
  const flights = hosts.flatMap((host) => host.messages.filter(({ kind }) => kind === "flies").map(() => host.pid));
  expect(flights).toHaveLength(1);
  expect(messages.flatMap(({ results }) => results)).toEqual(Array.from({ length: 3 * 8 }, () => flights[0]));
});
