import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { stopwatches } from "../../lib/time/clock.js";
import { watch } from "../support/eventually.js";
import { ManualTime } from "../support/manual-time.js";
import { MemoryHost } from "../support/memory-host.js";

/** A host's two clocks, moved by hand. */
function host() {
  const time = { monotonicMs: 5_000, wallMs: 1_700_000_000_000 };
  const pass = (ms: number): void => {
    time.monotonicMs += ms;
    time.wallMs += ms;
  };
  const { atLeast, atMost } = stopwatches({
    monotonic: () => time.monotonicMs,
    wall: () => Math.floor(time.wallMs),
  });
  return { time, pass, atLeast, atMost };
}

describe("the stopwatches", () => {
  it("a wall clock that steps back takes nothing from either, and hides no later suspend", () => {
    const { time, pass, atLeast, atMost } = host();
    const [least, most] = [atLeast(), atMost()];
    time.wallMs -= 3_600_000;
    pass(10);
    expect([atLeast() - least, atMost() - most]).toEqual([10, 10]);
    time.wallMs += 700;
    expect([atLeast() - least, atMost() - most]).toEqual([10, 710]);
  });

  it("atMost never goes back and never lags, whatever is suspended in between", () => {
    const events = fc.array(
      fc.record({ runs: fc.double({ min: 0, max: 1e4, noNaN: true }), suspended: fc.constantFrom(0, 0, 3, 900, 1e5) }),
    );
    fc.assert(
      fc.property(events, (steps) => {
        const { time, pass, atLeast, atMost } = host();
        const [least, most] = [atLeast(), atMost()];
        let [passed, before] = [0, most];
        for (const { runs, suspended } of steps) {
          pass(runs);
          time.wallMs += suspended;
          passed += runs + suspended;
          const now = atMost();
          expect(now).toBeGreaterThanOrEqual(before);
          // A millisecond less, because the wall clock has whole ones.
          expect(now - most).toBeGreaterThan(passed - 1.001);
          expect(atLeast() - least).toBeLessThan(passed + 0.001);
          before = now;
        }
      }),
    );
  });
});

it("trap 16: a wall clock that is set forward adds nothing to how long a call says that it has waited", async () => {
  const time = new ManualTime();
  const holder = new MemoryHost(time, { owner: "holder" });
  const host = new MemoryHost(time, { table: holder.table });
  await using _lock = await holder.mutex("x").lock();
  const error = host
    .mutex("x")
    .lock({ waitMs: 1_500 })
    .catch((reason: unknown) => reason);
  const ended = watch(error);
  await time.advance(500);
  Object.assign(host.session.clock, { atMost: () => time.elapsed + 60_000 });
  await time.advance(1_000);
  expect(ended.settled).toBe(true);
  expect(await error).toMatchObject({ code: "LOCK_TIMEOUT", waitedMs: 1_500 });
});
