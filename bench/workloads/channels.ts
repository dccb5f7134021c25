import type { Listeners } from "../listeners.js";
import { median } from "../numbers.js";
import type { Workload } from "../results.js";
import { Worker } from "../worker-process.js";

const LEASE_MS = 3_000;
const CYCLES_PER_BATCH = 20;

/** Each in turn, so that whatever disturbs one disturbs the others. */
const WHO: readonly Listeners[] = ["none", "idle", "otel"];

export const channels: Workload = {
  name: "channels",
  title: "The diagnostics channels, in a cycle of lock and unlock that nobody else wants",
  async run({ ground, quick, say }) {
    say("cycles without listeners, with idle ones, and with dynamutex/otel, in turn");
    await using worker = new Worker();
    const { looks, lookNs, cpuUs } = await worker.ask("channels", {
      options: await ground.options("dynamutex", LEASE_MS, undefined),
      who: WHO,
      batches: quick ? 20 : 120,
      cyclesPerBatch: CYCLES_PER_BATCH,
    });
    const cycleUs = median(cpuUs.map(([none = Number.NaN]) => none));
    const ratio = (index: number): number =>
      median(cpuUs.map((batch) => (batch[index] ?? Number.NaN) / (batch[0] ?? Number.NaN)));
    const line = (title: string, unit: string, value: number) =>
      ({ title, unit, values: { dynamutex: value } }) as const;
    const share = (100 * looks * lookNs) / (cycleUs * 1_000);
    return {
      lines: [
        line("looks at a channel a cycle", "", looks),
        line("one look", "ns", lookNs),
        { ...line("all of them, of the cycle's CPU", "%", share), goal: 1 },
        line("CPU with an idle listener on each channel", "×", ratio(1)),
        line("CPU with `dynamutex/otel` and the SDK, all spans", "×", ratio(2)),
      ],
      notes: [
        "Looks are counted in one cycle without listeners, and timed in a loop over all channels: their sum is far below what two " +
          "runs on the same machine differ by. The CPU with listeners is that of a cycle without them in the same process, " +
          "batch by batch; listeners also ask each reply what it cost.",
      ],
    };
  },
};
