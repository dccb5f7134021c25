import { randomInt } from "node:crypto";
import { expect, test } from "@jest/globals";
import { createTestTable, testEndpoint } from "../support/table.js";
import { career, type Kill, startCronHost } from "./cron-hosts.js";

const TICKS = 30;
const TICK_MS = 360_000;
const HOUR = 3_600_000;
/** Epoch ms of the first tick of the host whose clock is right. */
const BEGIN = Date.UTC(2030, 0, 1);

const somewhere = (moment: Kill["moment"], most = 7): Kill => ({ moment, count: randomInt(1, most + 1) });

test("3 hosts with clocks an hour apart, 30 ticks each, killed before, in and after the job: no tick is granted twice", async () => {
  const kills = new Set<Kill["moment"]>();
  // A host that finds all of its ticks done or held is not killed in its job; then they all begin anew.
  while (kills.size < 3) for (const kill of await round()) kills.add(kill);
}, 120_000);

/** @returns where hosts were killed. */
async function round(): Promise<readonly Kill["moment"][]> {
  const tableName = await createTestTable();
  const hosts = [-HOUR, 0, HOUR].map((aheadMs) => {
    const asks = Array.from({ length: TICKS }, (_, index) => ({ once: BEGIN + aheadMs + index * TICK_MS }));
    const startAt = (first: number) =>
      startCronHost(testEndpoint(), {
        ...{ tableName, ttlMs: 600, aheadMs, speed: 1, jobMs: 5, pauseMs: 30 },
        asks: asks.slice(first),
        endless: false,
      });
    return { asks, startAt };
  });
  const plans = [
    [somewhere("asking"), somewhere("began"), somewhere("ended")],
    [somewhere("ended"), somewhere("asking"), somewhere("began")],
    // Its ticks are the latest: whatever the others do, it has jobs to begin and to end.
    [somewhere("ended", 3), somewhere("began", 3), somewhere("asking")],
  ];
  const kills: Kill["moment"][] = [];
  const careers = await Promise.all(hosts.map(({ startAt }, index) => career(startAt, plans[index] ?? [], { kills })));

  const messages = careers.flatMap((one, index) =>
    one.map((message) => ({ ...message, asked: hosts[index]?.asks[message.ask]?.once as number })),
  );
  const runs = messages.filter(({ kind }) => kind === "began");
  const ticks = runs.map(({ tick }) => tick as number);
  expect(ticks.filter((tick, index) => ticks.indexOf(tick) < index)).toEqual([]);
  expect(runs.every(({ tick, asked }) => tick === asked)).toBe(true);

  const done = messages.filter(({ because }) => because === "done");
  expect(done.filter(({ asked, remembered }) => remembered === undefined || asked > remembered)).toEqual([]);
  // What was remembered had been asked for, by somebody.
  const asked = new Set(messages.map((message) => message.asked));
  expect(done.filter(({ remembered }) => !asked.has(remembered as number))).toEqual([]);

  // Every host got to the end of its schedule, and some work was done and some refused.
  for (const one of careers) expect(one.at(-1)).toMatchObject({ kind: "answered", ask: TICKS - 1 });
  expect(runs.length).toBeGreaterThanOrEqual(3);
  expect(done.length).toBeGreaterThanOrEqual(3);
  return kills;
}
