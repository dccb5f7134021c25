import { channel } from "node:diagnostics_channel";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { LockConfigError } from "../../lib/errors.js";
import { timers } from "../../lib/time/clock.js";
import { tableClockOn } from "../../lib/time/table-clock.js";

const EPOCH = Date.UTC(2026, 10, 20, 12);
const HOUR = 3_600_000;
const MINUTE = 60_000;

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
  /** @param wrongByMs by how much the clock of the server that answers is ahead. */
  const exchange = (thereMs = 5, backMs = 5, wrongByMs = 0): void => {
    const heard = clock.listen?.();
    pass(thereMs);
    const header = new Date(now.table + wrongByMs).toUTCString();
    pass(backMs);
    heard?.(header);
  };
  /** One exchange every so many ms, for so long. */
  const exchanges = (forMs: number, everyMs: number, wrongByMs: () => number = () => 0): void => {
    for (let left = forMs; left > 0; left -= everyMs) {
      exchange(5, 5, wrongByMs());
      pass(everyMs - 10);
    }
  };
  const width = (): number => {
    const bounds = clock.wall();
    return bounds === undefined ? Number.POSITIVE_INFINITY : bounds.latest - bounds.earliest;
  };
  return { clock, now, pass, exchange, exchanges, date, width };
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

  it("is not current by a reply that was asked for before the clock was set, and heard after it was set back", () => {
    const { clock, now, pass, exchange, date } = world();
    exchange();
    const heard = clock.listen?.();
    pass(5);
    const header = date();
    now.wall += HOUR;
    exchange();
    expect(clock.isCurrent?.()).toBe(true);
    now.wall -= HOUR;
    heard?.(header);
    expect(clock.isCurrent?.()).toBe(false);
    exchange();
    expect(clock.isCurrent?.()).toBe(true);
    expectTableTime({ clock, now });
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
    hosts.exchanges(5_190, 173);
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
    hosts.exchanges(5_190, 173);
    hosts.now.table += 2_000;
    hosts.now.wall += 2_000 - 600;
    hosts.exchange();
    expectTableTime(hosts);
    hosts.now.table += 400;
    hosts.now.wall += 400 - HOUR;
    hosts.exchange();
    expectTableTime(hosts);
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

  it("with regionSkewMs has bounds that are as much wider on both sides, and is as current as without", () => {
    const [plain, wide] = [world(), world(0, { regionSkewMs: 400 })];
    for (const hosts of [plain, wide]) hosts.exchanges(865, 173);
    const [known, widened] = [plain.clock.wall(), wide.clock.wall()];
    expect(widened).toEqual({ earliest: (known?.earliest ?? 0) - 400, latest: (known?.latest ?? 0) + 400 });
    expect(wide.clock.isCurrent?.()).toBe(plain.clock.isCurrent?.());
  });

  describe("trap 31: whose replies lose their date", () => {
    it("falls back once it is no longer current, narrows its bounds by the host's clock, and says so", () => {
      const hosts = world();
      hosts.exchange();
      hosts.pass(HOUR / 2);
      expect(hosts.clock.isCurrent?.()).toBe(false);
      hosts.clock.listen?.()(undefined);
      expect(hosts.clock.isCurrent?.()).toBe(true);
      expect(told).toEqual([{ event: "no-date", detail: expect.stringContaining("1000 ms") }]);
      expect(hosts.width()).toBeLessThanOrEqual(2_000);
      expectTableTime(hosts);
      hosts.pass(24 * HOUR);
      hosts.clock.listen?.()(undefined);
      expect(hosts.clock.isCurrent?.()).toBe(true);
      expect(hosts.width()).toBeLessThanOrEqual(2_000);
      expectTableTime(hosts);
      expect(told).toHaveLength(1);
      hosts.exchange();
      expect(hosts.width()).toBeLessThan(1_020);
    });

    it.each([HOUR, -HOUR])("allows for both, where the host's clock is %d ms ahead of what it knew", (aheadMs) => {
      const hosts = world(aheadMs);
      hosts.exchange();
      hosts.pass(HOUR / 2);
      hosts.clock.listen?.()(undefined);
      expect(hosts.clock.isCurrent?.()).toBe(true);
      expectTableTime(hosts);
      const { earliest = 0, latest = 0 } = hosts.clock.wall() ?? {};
      expect(aheadMs > 0 ? latest - hosts.now.table : hosts.now.table - earliest).toBeGreaterThan(HOUR - 2_000);
      hosts.exchange();
      expect(hosts.width()).toBeLessThan(1_020);
    });
  });

  describe("trap 32: a reply whose date is wrong", () => {
    const aheadOf = ({ clock, now }: ReturnType<typeof world>) => {
      const { earliest = Number.NaN, latest = Number.NaN } = clock.wall() ?? {};
      return { earliest: earliest - now.table, latest: latest - now.table };
    };

    it.each([MINUTE, -MINUTE, 10 * MINUTE, HOUR, -HOUR, 24 * HOUR])(
      "by %d ms: widens the bounds to cover both, and the next right one narrows them",
      (wrongByMs) => {
        const hosts = world();
        hosts.exchanges(2 * MINUTE, 1_163);
        const before = hosts.width();
        hosts.exchange(5, 5, wrongByMs);
        expectTableTime(hosts);
        const { earliest, latest } = aheadOf(hosts);
        if (wrongByMs > 0) {
          expect(earliest).toBeLessThanOrEqual(0);
          expect(earliest).toBeGreaterThan(-1_000);
          expect(latest).toBeGreaterThanOrEqual(wrongByMs);
        } else {
          expect(earliest).toBeLessThanOrEqual(wrongByMs);
          expect(latest).toBeGreaterThanOrEqual(0);
          expect(latest).toBeLessThan(1_000);
        }
        expect(hosts.clock.isCurrent?.()).toBe(true);
        expect(told).toEqual([{ event: "contradicted", detail: expect.stringContaining("allowing for both") }]);
        hosts.exchange();
        expectTableTime(hosts);
        expect(hosts.width()).toBeLessThan(before + 10);
        expect(told).toHaveLength(1);
      },
    );

    it.each([MINUTE, -MINUTE])("by %d ms, again and again for a minute, moves no bound past the truth", (wrongByMs) => {
      const hosts = world();
      hosts.exchange();
      for (let reply = 0; reply < 59; reply += 1) {
        hosts.exchange(5, 5, wrongByMs);
        hosts.pass(990);
        expectTableTime(hosts);
      }
      hosts.exchanges(2 * MINUTE, 1_000);
      expectTableTime(hosts);
      expect(hosts.width()).toBeLessThan(1_100);
      expect(told.map(({ event }) => event)).toEqual(["contradicted"]);
    });

    it("as the very first one, is not believed any more from the first right one on", () => {
      for (const wrongByMs of [MINUTE, -MINUTE]) {
        const hosts = world();
        hosts.exchange(5, 5, wrongByMs);
        let count = 0;
        hosts.exchange();
        expectTableTime(hosts);
        for (let second = 0; second < 90; second += 1) {
          hosts.exchanges(1_000, 1_000, () => (count++ % 3 === 0 ? wrongByMs : 0));
          expectTableTime(hosts);
        }
        hosts.exchanges(MINUTE + 2_000, 1_000);
        expectTableTime(hosts);
        expect(hosts.width()).toBeLessThan(1_100);
      }
    });
  });

  describe("a table whose time is set", () => {
    it.each([HOUR, -HOUR])("by %d ms is believed once replies of a minute agree, and it says so", (setByMs) => {
      const hosts = world();
      hosts.exchanges(2 * MINUTE, 1_000);
      hosts.now.table += setByMs;
      hosts.exchange();
      // What is stamped meanwhile is late enough by either.
      expectTableTime(hosts);
      hosts.exchanges(MINUTE - 2_000, 1_000);
      expect(hosts.width()).toBeGreaterThan(HOUR - 2_000);
      hosts.exchanges(4_000, 1_000);
      expectTableTime(hosts);
      expect(hosts.width()).toBeLessThan(1_100);
      expect(told.map(({ event }) => event)).toEqual(["contradicted", "restarted"]);
    });
  });

  it.each([-1, Number.NaN, Number.POSITIVE_INFINITY])("refuses a fallback skew of %d", (fallbackSkewMs) => {
    expect(() => world(0, { fallbackSkewMs })).toThrow(LockConfigError);
  });

  describe("is current", () => {
    it("from the first reply on at any age, while its bounds are at most 2 s wide", () => {
      const { clock, pass, exchange, width } = world();
      expect(clock.isCurrent?.()).toBe(false);
      exchange();
      pass(10 * MINUTE);
      expect(width()).toBeLessThan(2_000);
      expect(clock.isCurrent?.()).toBe(true);
      // 1 010 ms after the reply, and 1 ms more in each second.
      pass(989_000 - 10 * MINUTE);
      expect(width()).toBeLessThanOrEqual(2_000);
      expect(clock.isCurrent?.()).toBe(true);
      pass(2_000);
      expect(width()).toBeGreaterThan(2_000);
      expect(clock.isCurrent?.()).toBe(false);
      exchange();
      expect(clock.isCurrent?.()).toBe(true);
    });

    it("at any width, while the request of its last reply left less than 60 s ago", () => {
      const { clock, pass, exchange, width } = world();
      exchange(5, 5_000);
      expect(width()).toBeGreaterThan(6_000);
      pass(MINUTE - 5_005 - 1);
      expect(clock.isCurrent?.()).toBe(true);
      pass(1);
      expect(clock.isCurrent?.()).toBe(false);
    });

    it.each<readonly [string, { readonly tableMs: number; readonly wallMs: number }]>([
      ["a suspend of an hour", { tableMs: HOUR, wallMs: HOUR }],
      ["a suspend of 60 s", { tableMs: MINUTE, wallMs: MINUTE }],
      ["a wall clock that is set forward by an hour", { tableMs: 0, wallMs: HOUR }],
    ])("no longer after %s, until the next reply", (_case, { tableMs, wallMs }) => {
      const { clock, now, exchange } = world();
      exchange();
      now.table += tableMs;
      now.wall += wallMs;
      expect(clock.isCurrent?.()).toBe(false);
      exchange();
      expect(clock.isCurrent?.()).toBe(true);
    });

    it("not by a reply whose request was under way during a suspend", () => {
      const { clock, now, date, exchange } = world();
      const heard = clock.listen?.();
      now.table += HOUR;
      now.wall += HOUR;
      heard?.(date());
      expect(clock.isCurrent?.()).toBe(false);
      exchange();
      expect(clock.isCurrent?.()).toBe(true);
    });
  });
});
