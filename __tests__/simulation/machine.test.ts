import { describe, expect, it } from "@jest/globals";
import { Machine } from "./machine.js";
import { Scheduler } from "./scheduler.js";

const EPOCH = 1_000_000;

function world(plan = {}) {
  const scheduler = new Scheduler();
  const machine = new Machine(
    scheduler,
    { aheadMs: 0, monotonicPpm: 0, wallPpm: 0, ...plan },
    { epoch: EPOCH, seed: 1 },
  );
  const process = machine.start();
  const seen: string[] = [];
  const note = (what: string) => () => void seen.push(`${what} ${Math.round(scheduler.now / 10) * 10}`);
  const run = (until: number) =>
    scheduler.run(
      until,
      () => false,
      () => undefined,
    );
  return { scheduler, machine, process, seen, note, run };
}

describe("a simulated machine", () => {
  it("has clocks that are wrong, drift and can be set", async () => {
    const { machine, run } = world({ aheadMs: 5_000, monotonicPpm: 500, wallPpm: -500 });
    await run(100_000);
    expect(machine.time.monotonic()).toBeCloseTo(100_050, 6);
    expect(machine.time.wall()).toBe(EPOCH + 5_000 + 99_950);
    machine.stepWall(-60_000);
    expect(machine.time.wall()).toBe(EPOCH - 55_000 + 99_950);
  });

  it("rings its timers late after a freeze, and hears what came in the meantime", async () => {
    const { scheduler, machine, process, seen, note, run } = world();
    process.after(100, note("timer"));
    scheduler.at(50, () => machine.sleep(400, "freeze"));
    scheduler.wakeAt(200, () => process.deliver(note("message")));
    await run(1_000);
    expect(seen.sort()).toEqual(["message 450", "timer 450"]);
    expect(machine.time.monotonic()).toBe(1_000);
  });

  it("stops its monotonic clock in a suspend, and the timers that are due on it", async () => {
    const { scheduler, machine, process, seen, note, run } = world();
    process.after(100, note("timer"));
    scheduler.at(50, () => machine.sleep(400, "suspend"));
    await run(1_000);
    expect(seen).toEqual(["timer 500"]);
    expect([machine.time.monotonic(), machine.time.wall()]).toEqual([600, EPOCH + 1_000]);
  });

  it("takes timers and messages with it when it crashes", async () => {
    const { scheduler, machine, process, seen, note, run } = world();
    process.after(100, note("timer"));
    scheduler.at(50, () => machine.crash());
    scheduler.wakeAt(200, () => process.deliver(note("message")));
    await run(1_000);
    expect([seen, process.timers, process.crashed]).toEqual([[], 0, true]);
    expect(machine.start().crashed).toBe(false);
  });
});
