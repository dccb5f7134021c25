import { expect, test } from "@jest/globals";
import { Cron } from "croner";
import { MemoryTable } from "../../../lib/testing/memory-table.js";
import { IS_FULL } from "../../support/full.js";
import { ManualTime } from "../../support/manual-time.js";
import { MemoryHost } from "../../support/memory-host.js";
import { seededRandom } from "../../support/seeded-random.js";

const DAY_MS = 86_400_000;
/** A schedule may fire up to so much early or late. */
const OFF_MS = 5_000;

/** The days around which a zone changes its offset, in a year of the virtual time. */
function changesOf(zone: string, year: number): { readonly around: number; readonly by: string }[] {
  const format = new Intl.DateTimeFormat("en", { timeZone: zone, timeZoneName: "longOffset" });
  const offsetAt = (ms: number) => format.formatToParts(ms).find(({ type }) => type === "timeZoneName")?.value ?? "";
  const changes = [];
  for (let day = Date.UTC(year, 0, 2); day < Date.UTC(year + 1, 0, 1); day += DAY_MS) {
    const [before, after] = [offsetAt(day - DAY_MS), offsetAt(day)];
    if (before !== after) changes.push({ around: day - DAY_MS, by: `${before} ${after}` });
  }
  return changes;
}

/** The virtual time begins in 2030. */
const YEAR = 2030;

/** One zone for each change of an offset that there is; all zones where there is time. */
const zones = Intl.supportedValuesOf("timeZone").flatMap((zone) =>
  changesOf(zone, YEAR).map((change) => ({ zone, ...change })),
);
const changes = IS_FULL ? zones : [...new Map(zones.map((change) => [change.by, change])).values()];

test(`there are changes to test: ${changes.length}`, () => {
  expect(changes.length).toBeGreaterThan(20);
});

const PATTERNS = ["30 0 * * *", "30 2 * * *", "30 1 * * *", "59 23 * * *", "0 0 * * *"];

test.each(IS_FULL ? PATTERNS : PATTERNS.slice(0, 2))(
  "a job at %s runs once in each night in which its zone has that time, whatever the zone does to its clocks",
  async (pattern) => {
    const random = seededRandom(1, pattern);
    for (const { zone, around } of changes.toSorted((one, other) => one.around - other.around)) {
      const cron = new Cron(pattern, { timezone: zone, paused: true });
      const time = new ManualTime();
      const table = new MemoryTable();
      const hosts = [0, 1, 2].map((host) => {
        const aheadMs = Math.floor(random() * 400) - 200;
        return new MemoryHost(time, { table, owner: `${host}`, maxSkewMs: 500, aheadMs }).mutex("nightly");
      });
      const runs: number[] = [];
      const once = (now: Date): Date => cron.previousRuns(1, now)[0] ?? now;
      const fires: number[] = [];
      for (let fire = cron.nextRun(new Date(around - 2 * DAY_MS)); fire !== null && fires.length < 5; ) {
        fires.push(fire.getTime());
        fire = cron.nextRun(fire);
      }
      // The tick before these is that of an earlier night, which has run.
      await time.advance(Math.max(0, (fires[0] ?? 0) - OFF_MS - time.now));
      for (const fire of fires) {
        await time.advance(Math.max(0, fire - OFF_MS - time.now));
        const asked = hosts.map(async (mutex, host) => {
          await time.clock().sleep(Math.floor(random() * OFF_MS * (host === 2 ? 2 : 1)));
          await mutex.tryRun(({ tick }) => void runs.push(Number(tick)), { once });
        });
        await time.settle(Promise.all(asked), { stepMs: 5 });
      }
      expect({ zone, runs }).toEqual({ zone, runs: fires });
    }
  },
);

/** A job at 02:30 in Berlin, in the nights of 2030 without that time, and with two of them. */
const NIGHTS = [
  { night: "2030-03-31", before: "2030-03-30T01:30:00.000Z", tick: "2030-03-31T01:00:00.000Z" },
  { night: "2030-10-27", before: "2030-10-26T00:30:00.000Z", tick: "2030-10-27T00:30:00.000Z" },
];

test.each(NIGHTS)(
  "a job at 02:30 that hosts ask for all through the night $night, in which clocks change, runs once in it and no call rejects",
  async ({ night, before, tick }) => {
    const cron = new Cron("30 2 * * *", { timezone: "Europe/Berlin", paused: true });
    const once = (now: Date): Date => cron.previousRuns(1, now)[0] as Date;
    const time = new ManualTime();
    const table = new MemoryTable();
    const [early, late] = ["early", "late"].map((owner) =>
      new MemoryHost(time, { table, owner, maxSkewMs: 500 }).mutex("nightly"),
    );
    const runs: string[] = [];
    const asked: Promise<unknown>[] = [];
    const ask = (mutex = early): void => {
      asked.push(
        mutex?.tryRun((lock) => void runs.push(new Date(Number(lock.tick)).toISOString()), {
          once,
        }) as Promise<unknown>,
      );
    };
    const from = Date.parse(`${night}T00:00:00Z`);
    for (let minute = 0; minute <= 180; minute += 1) {
      await time.advance(from + minute * 60_000 - OFF_MS - time.now);
      ask(early);
      await time.advance(2 * OFF_MS);
      ask(late);
    }
    const turns = Promise.all(asked);
    await time.settle(turns, { stepMs: 5 });
    await turns; // none has rejected
    expect(runs).toEqual([before, tick]);
  },
);
