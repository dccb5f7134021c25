import { describe, expect, test } from "@jest/globals";
import { systemClock } from "../../lib/index.js";
import type { Bounds } from "../../lib/time/clock.js";

/** Bounds that it shows, and what the host's clock shows right before and right after that. */
function look(options?: Parameters<typeof systemClock>[0]) {
  const clock = systemClock(options);
  const before = Date.now();
  const { earliest, latest } = clock.wall() as Bounds;
  return { earliest, latest, before, after: Date.now() };
}

describe("systemClock()", () => {
  test.each([
    ["maxSkewMs", { maxSkewMs: 3_600_000 }, 3_600_000],
    ["a second by default", undefined, 1_000],
    ["nothing, if told so", { maxSkewMs: 0 }, 0],
  ])("shows the host's clock, plus or minus %s", (_, options, skewMs) => {
    const { earliest, latest, before, after } = look(options);
    expect(latest - earliest).toBe(2 * skewMs);
    const middle = (earliest + latest) / 2;
    expect(middle).toBeGreaterThanOrEqual(before);
    expect(middle).toBeLessThanOrEqual(after);
  });
});

/** How many timers keep this process alive. */
const keeping = (): number => process.getActiveResourcesInfo().filter((type) => type === "Timeout").length;

describe("trap 15: of Node's timers", () => {
  const { alarm, sleep, stay } = systemClock();

  test("an alarm does not keep the process alive, so that a lock that is held does not", () => {
    const before = keeping();
    const cancel = alarm(60_000, () => undefined);
    const during = keeping();
    cancel();
    expect(during).toBe(before);
  });

  test("a sleep and a stay keep it alive, and no longer than they last: a caller waits", async () => {
    const before = keeping();
    const controller = new AbortController();
    const ended = sleep(60_000, controller.signal).catch((reason: unknown) => reason);
    const mayExit = stay?.();
    const during = keeping();
    mayExit?.();
    controller.abort();
    expect(await ended).toBe(controller.signal.reason);
    expect([during, keeping()]).toEqual([before + 2, before]);
  });
});
