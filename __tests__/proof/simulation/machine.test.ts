import { describe, expect, test } from "@jest/globals";
import { Machine } from "./machine.js";
import { Scheduler } from "./scheduler.js";

const AN_HOUR_MS = 3_600_000;

describe("a wall clock that is to be set back after a suspend", () => {
  const suspended = () => {
    const scheduler = new Scheduler();
    const machine = new Machine(scheduler, { aheadMs: 0, monotonicPpm: 0, wallPpm: 0 }, { epoch: 0, seed: 1 });
    machine.sleep(5_000, "suspend");
    const woken = () =>
      scheduler.run(
        10_000,
        () => !machine.asleep,
        () => undefined,
      );
    return { machine, woken };
  };

  test("is not, while no process can have noticed the suspend", async () => {
    const { machine, woken } = suspended();
    await woken();
    expect(machine.stepWall(-AN_HOUR_MS)).toBe(false);
    machine.time.wall();
    expect(machine.stepWall(-AN_HOUR_MS)).toBe(true);
  });

  test("is not either, if somebody has looked at it while the machine stood still", async () => {
    const { machine, woken } = suspended();
    machine.time.wall();
    await woken();
    expect(machine.stepWall(-AN_HOUR_MS)).toBe(false);
  });
});
