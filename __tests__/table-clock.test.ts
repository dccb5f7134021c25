import { channel } from "node:diagnostics_channel";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { LockConfigError } from "../lib/errors.js";
import { timers } from "../lib/time/clock.js";
import { tableClockOn } from "../lib/time/table-clock.js";

const EPOCH = Date.UTC(2026, 10, 20, 12);
const HOUR = 3_600_000;

/** A host whose clock is `aheadMs` wrong, and a table. Time passes when told. */
function world(aheadMs = 0, options = {}) {
  const now = { table: EPOCH + 250, monotonic: 77, wall: EPOCH + 250 + aheadMs };
  const pass = (ms: number): void => {
    now.table += ms;
    now.monotonic += ms;
    now.wall += ms;
  };
  const clock = tableClockOn(
    { time: { monotonic: () => now.monotonic, wall: () => Math.floor(now.wall) }, ...timers },
    options,
  );
  const date = (): string => new Date(now.table).toUTCString();
  const exchange = (thereMs = 5, backMs = 5): void => {
    const heard = clock.listen?.();
    pass(thereMs);
    const header = date();
    pass(backMs);
    heard?.(header);
  };
  const width = (): number => {
    const bounds = clock.wall();
    return bounds === undefined ? Number.POSITIVE_INFINITY : bounds.latest - bounds.earliest;
  };
  return { clock, now, pass, exchange, date, width };
}

function expectTableTime({ clock, now }: Pick<ReturnType<typeof world>, "clock" | "now">): void {
  const bounds = clock.wall();
  expect(bounds?.earliest).toBeLessThanOrEqual(now.table);
  expect(bounds?.latest).toBeGreaterThanOrEqual(now.table);
}

describe("the table clock", () => {
  const told: { event: string; detail: string }[] = [];
  const hear = (message: unknown): void => void told.push(message as (typeof told)[number]);
  beforeEach(() => {
    told.length = 0;
    channel("dynamutex:clock").subscribe(hear);
  });
  afterEach(() => void channel("dynamutex:clock").unsubscribe(hear));

  it("knows nothing before the first reply, and is not current", () => {
    const { clock } = world(HOUR);
    expect(clock.wall()).toBeUndefined();
    expect(clock.isCurrent?.()).toBe(false);
  });

  it.each([HOUR, -HOUR, 0])("knows the table's time on a host whose clock is %d ms ahead", (aheadMs) => {
    const hosts = world(aheadMs);
    hosts.exchange();
    expectTableTime(hosts);
    expect(hosts.width()).toBeCloseTo(1_010, 0);
    for (let reply = 0; reply < 20; reply += 1) {
      hosts.pass(163);
      hosts.exchange();
      expectTableTime(hosts);
    }
    expect(hosts.width()).toBeLessThan(120);
    expect(told).toEqual([]);
  });

  it("widens with age, and narrows again with the next replies", () => {
    const hosts = world();
    for (let reply = 0; reply < 30; reply += 1) {
      hosts.exchange();
      hosts.pass(163);
    }
    const before = hosts.width();
    hosts.pass(HOUR);
    expect(hosts.width() - before).toBeCloseTo(HOUR / 1_000, -2);
    expectTableTime(hosts);
    hosts.exchange();
    expect(hosts.width()).toBeLessThan(1_020);
  });

  it("is ready for a suspend: the near bound stays, the far one moves by what the wall clock shows", () => {
    const hosts = world();
    hosts.exchange();
    hosts.now.table += HOUR;
    hosts.now.wall += HOUR;
    expectTableTime(hosts);
    expect(hosts.width()).toBeGreaterThan(HOUR);
    hosts.exchange();
    expectTableTime(hosts);
    expect(hosts.width()).toBeLessThan(1_020);
    expect(told).toEqual([]);
  });

  it("survives a suspend between sending and reading", () => {
    const hosts = world();
    const heard = hosts.clock.listen?.();
    const header = hosts.date();
    hosts.now.table += HOUR;
    hosts.now.wall += HOUR;
    heard?.(header);
    expectTableTime(hosts);
  });

  it("is not moved by a wall clock that steps, but for the far bound, until the next reply", () => {
    const hosts = world();
    hosts.exchange();
    hosts.now.wall -= HOUR;
    hosts.pass(10);
    expectTableTime(hosts);
    expect(hosts.width()).toBeLessThan(1_020);
    hosts.now.wall += HOUR;
    expectTableTime(hosts);
    hosts.exchange();
    expect(hosts.width()).toBeLessThan(1_020);
  });

  it("carries no far bound over a suspend that a step back of the wall clock hides in part", () => {
    const hosts = world(HOUR);
    for (let reply = 0; reply < 30; reply += 1) {
      hosts.pass(163);
      hosts.exchange();
    }
    hosts.now.table += 2_000;
    hosts.now.wall += 2_000 - 600;
    hosts.exchange();
    expectTableTime(hosts);
    hosts.now.table += 400;
    hosts.now.wall += 400 - HOUR;
    hosts.exchange();
    expectTableTime(hosts);
  });

  it("takes replies in any order", () => {
    const hosts = world();
    const slow = hosts.clock.listen?.();
    const header = hosts.date();
    for (let reply = 0; reply < 10; reply += 1) {
      hosts.pass(163);
      hosts.exchange();
    }
    const before = hosts.width();
    slow?.(header);
    expectTableTime(hosts);
    expect(hosts.width()).toBe(before);
  });

  it("starts again from a reply that contradicts what it knew, and says so", () => {
    const hosts = world();
    hosts.exchange();
    hosts.now.table -= HOUR;
    hosts.exchange();
    expectTableTime(hosts);
    expect(told).toEqual([{ event: "restarted", detail: expect.stringContaining("taking the table's word") }]);
  });

  it.each([undefined, "yesterday"])(
    "falls back to the host's clock when the first reply has the date %p, and says so once",
    (header) => {
      const hosts = world(0, { fallbackSkewMs: 700 });
      for (let reply = 0; reply < 3; reply += 1) hosts.clock.listen?.()(header);
      expect(hosts.clock.wall()).toEqual({ earliest: hosts.now.wall - 700, latest: hosts.now.wall + 700 });
      expect(told).toEqual([{ event: "no-date", detail: expect.stringContaining("700 ms") }]);
      hosts.exchange();
      expect(hosts.width()).toBeCloseTo(1_010, 0);
    },
  );

  it("keeps what it knows when one reply has no date", () => {
    const hosts = world();
    hosts.exchange();
    const before = hosts.clock.wall();
    hosts.clock.listen?.()(undefined);
    expect(hosts.clock.wall()).toEqual(before);
    expect(told).toEqual([]);
  });

  it.each([-1, Number.NaN, Number.POSITIVE_INFINITY])("refuses a fallback skew of %d", (fallbackSkewMs) => {
    expect(() => world(0, { fallbackSkewMs })).toThrow(LockConfigError);
  });
});
