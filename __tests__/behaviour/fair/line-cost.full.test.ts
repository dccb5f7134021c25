import { expect, test } from "@jest/globals";
import { ManualTime } from "../../support/manual-time.js";
import { MemoryHost } from "../../support/memory-host.js";

/** CPU time in µs that each of so many fair callers of one process costs, the least of three runs. */
async function cpuOfEach(callers: number): Promise<number> {
  let least = Number.POSITIVE_INFINITY;
  for (let run = 0; run < 3; run += 1) {
    const time = new ManualTime();
    const mutex = new MemoryHost(time).mutex("popular", { fair: true });
    const before = process.cpuUsage();
    await time.settle(Promise.all(Array.from({ length: callers }, () => mutex.run(() => undefined))));
    const { user, system } = process.cpuUsage(before);
    least = Math.min(least, (user + system) / callers);
  }
  return least;
}

test("a fair caller of a process costs as much among 4 000 of them as among 250, nearly", async () => {
  await cpuOfEach(250);
  const few = await cpuOfEach(250);
  expect((await cpuOfEach(4_000)) / few).toBeLessThan(4);
});
