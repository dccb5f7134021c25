import { expect, test } from "@jest/globals";
import type { Host } from "../support/host-process.js";
import { createTestTable, testEndpoint } from "../support/table.js";
import { startCronHost } from "./cron-hosts.js";
import type { CronMessage } from "./hosts/cron-host.js";

const HOUR = 3_600_000;
const HOLD_MS = 1_000;
const JOBS = 4;

test("a job of 5 ms with a hold of 1 s runs on no host again within that second, also after it threw", async () => {
  const tableName = await createTestTable();
  const start = (aheadMs: number): Host<CronMessage> =>
    startCronHost(testEndpoint(), {
      ...{ tableName, ttlMs: 30_000, aheadMs, speed: 1, jobMs: 5, pauseMs: 15 },
      ...{ asks: [{ holdAtLeastMs: HOLD_MS }], endless: true, throwsEvery: 2 },
    });
  await using late = start(-HOUR);
  await using right = start(0);
  await using early = start(HOUR);
  const hosts = [late, right, early];
  const heard = (kind: CronMessage["kind"]): CronMessage[] =>
    hosts.flatMap(({ messages }) => messages.filter((message) => message.kind === kind));
  while (heard("answered").filter(({ because }) => because === "ran" || because === "threw").length < JOBS) {
    await Promise.race(hosts.map((host) => host.next()));
  }

  const began = heard("began")
    .map(({ at }) => at)
    .sort((one, other) => one - other);
  const apart = began.slice(1).map((at, index) => at - (began[index] as number));
  expect(apart.filter((ms) => ms < HOLD_MS)).toEqual([]);
  const answers = heard("answered").map(({ because }) => because);
  expect(answers).toContain("threw");
  expect(answers.filter((because) => because === "held").length).toBeGreaterThan(JOBS);
}, 120_000);
