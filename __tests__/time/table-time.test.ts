import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import type { Reading } from "../../lib/time/clock.js";
import { contradict, intersect, RATE_DRIFT } from "../../lib/time/clock.js";
import { age, fromReply, parseDateHeader, type TableTime } from "../../lib/time/table-clock.js";

const EPOCH = Date.UTC(2026, 10, 20, 12);
const at = (ms: number): Reading => ({ atLeast: ms, atMost: ms, lead: 0 });

/** What one reply says when the table's clock is `table` ahead of our stopwatch, which runs at its rate. */
function reply(sentMs: number, servedMs: number, readMs: number, table = EPOCH): TableTime {
  return fromReply(Math.floor((table + servedMs) / 1_000) * 1_000, at(sentMs), at(readMs));
}

describe("what a reply says about the table's time", () => {
  it("is a second and a round trip wide", () => {
    const { earliest, latest } = reply(100, 110, 120);
    expect(earliest).toBe(EPOCH);
    expect(latest).toBeCloseTo(EPOCH + 1_020, 1);
  });

  it("ages to both sides by what the rates may differ", () => {
    const later = age(reply(0, 0, 0), at(10_000));
    expect(later.earliest - EPOCH).toBeCloseTo(10_000 - 5, 1);
    expect(later.latest - EPOCH).toBeCloseTo(11_000 + 5, 1);
  });

  it("contradicts a reply of another time", () => {
    expect(contradict(reply(0, 0, 0), reply(0, 0, 0))).toBe(false);
    expect(contradict(reply(0, 0, 0), reply(0, 0, 0, EPOCH + 5_000))).toBe(true);
    expect(contradict(reply(0, 0, 0, EPOCH + 5_000), reply(0, 0, 0))).toBe(true);
  });

  it("reads a Date header and nothing like it", () => {
    expect(parseDateHeader("Fri, 20 Nov 2026 12:00:00 GMT")).toBe(EPOCH);
    for (const other of [
      undefined,
      "",
      "5",
      "2026-11-20T12:00:00Z",
      "Fri, 20 Nov 2026 12:00:00",
      "Fri, 20 Xxx 2026 12:00:00 GMT",
    ]) {
      expect(parseDateHeader(other)).toBeUndefined();
    }
  });
});

describe("the bounds", () => {
  const step = fc.record({
    pauseMs: fc.double({ min: 0, max: 60_000, noNaN: true }),
    thereMs: fc.double({ min: 0, max: 3_000, noNaN: true }),
    backMs: fc.double({ min: 0, max: 3_000, noNaN: true }),
    suspendedMs: fc.constantFrom(0, 0, 0, 800, 90_000),
  });
  const rate = fc.double({ min: -RATE_DRIFT, max: RATE_DRIFT, noNaN: true });

  it("always hold the table's time, for any rates within the stated drift, any delays and suspends", () => {
    fc.assert(
      fc.property(rate, fc.nat(1e6), fc.array(step, { minLength: 1, maxLength: 30 }), (drift, offset, steps) => {
        // `table` is the table's time since EPOCH; the host's stopwatches run `drift` fast or slow against it.
        let [table, slept] = [offset, 0];
        const now = (): Reading => ({
          atLeast: (table - slept) * (1 + drift),
          atMost: (table - slept) * (1 + drift) + slept,
          lead: slept,
        });
        let known: TableTime | undefined;
        const check = (): void => {
          if (known === undefined) return;
          const { earliest, latest } = age(known, now());
          expect(earliest).toBeLessThanOrEqual(EPOCH + table + 1e-3);
          expect(latest).toBeGreaterThanOrEqual(EPOCH + table - 1e-3);
        };
        for (const { pauseMs, thereMs, backMs, suspendedMs } of steps) {
          table += pauseMs;
          check();
          const sent = now();
          table += thereMs;
          const date = Math.floor((EPOCH + table) / 1_000) * 1_000;
          table += backMs + suspendedMs;
          slept += suspendedMs;
          const said = fromReply(date, sent, now());
          const aged = known && age(known, now());
          expect(aged !== undefined && contradict(aged, said)).toBe(false);
          known = aged === undefined ? said : intersect(aged, said);
          check();
        }
      }),
      { numRuns: 500 },
    );
  });
});
