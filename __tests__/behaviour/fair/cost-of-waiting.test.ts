import { expect, test } from "@jest/globals";
import { ManualTime } from "../../support/manual-time.js";
import { MemoryHost } from "../../support/memory-host.js";
import type { Message } from "../../support/message.js";
import { pageAt } from "../../support/pages.js";
import { seededRandom } from "../../support/seeded-random.js";

const [HOSTS, HELD_MS] = [20, 180_000];

/** In units: a write of a row is one, an eventually consistent read half of one. */
function unitsOf(sent: readonly Message[]) {
  const units = { reads: 0, writes: 0 };
  for (const message of sent) {
    if (message.kind === "read") units.reads += message.consistent ? 1 : 0.5;
    else if (message.kind === "query") units.reads += message.query.consistent ? 1 : 0.5;
    else units.writes += 1;
  }
  return units;
}

/** What twenty hosts pay in an hour in which they wait for one that holds the lock. */
async function hourOfWaiting(fair: boolean) {
  const time = new ManualTime();
  const holder = new MemoryHost(time, { owner: "holder" });
  const waiters = Array.from(
    { length: HOSTS },
    (_, index) =>
      new MemoryHost(time, { owner: `w${index}`, table: holder.table, random: seededRandom(1, "waiter", index) }),
  );
  const lock = await holder.mutex("busy", { fair }).lock();
  const stop = new AbortController();
  const waiting = waiters.map((host) =>
    host
      .mutex("busy", { fair })
      .lock({ signal: stop.signal })
      .catch(() => undefined),
  );
  await time.advance(60_000);
  const before = waiters.map(({ sent }) => sent.length);
  await time.advance(HELD_MS);
  const units = unitsOf(waiters.flatMap(({ sent }, index) => sent.slice(before[index])));
  stop.abort();
  await Promise.all(waiting);
  await lock.unlock();
  const perHour = 3_600_000 / HELD_MS;
  return { reads: units.reads * perHour, writes: units.writes * perHour };
}

test("what twenty hosts pay that wait for an hour is what the page says, of a fair lock and of a plain one", async () => {
  const row =
    /hosts that wait for an hour .*\| ([\d ]+) RRU, ([\d ]+) WRU; for a plain mutex ([\d ]+) RRU, ([\d ]+) WRU \|/;
  const [, ...stated] = row.exec(pageAt("docs/guides/fair-queue.md").text) ?? [];
  const [fair, plain] = [await hourOfWaiting(true), await hourOfWaiting(false)];
  const paid = [fair.reads, fair.writes, plain.reads, plain.writes];
  expect(stated).toHaveLength(paid.length);
  for (const [index, units] of paid.entries()) {
    const figure = Number(stated[index]?.replaceAll(" ", ""));
    expect(Math.abs(units - figure)).toBeLessThan(0.05 * figure);
  }
});
