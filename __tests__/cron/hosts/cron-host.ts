import { setTimeout as sleep } from "node:timers/promises";
import { LockTable, type TryRunOptions } from "../../../lib/index.js";
import { hostConfig, report } from "../../support/host-process.js";

export interface CronHostConfig {
  readonly tableName: string;
  readonly name: string;
  readonly ttlMs: number;
  readonly jobMs: number;
  /** What it asks for, again and again. */
  readonly ask: TryRunOptions;
}

/** What happened to one of its asks. */
export interface CronMessage {
  readonly kind: "began" | "ended" | "answered";
  readonly tick?: number | undefined;
  readonly attempt?: number | undefined;
  readonly because?: "ran" | "held" | "done" | "gave-up" | "superseded" | "failed";
  readonly remembered?: number | undefined;
  readonly [other: string]: unknown;
}

const { name, jobMs, ask, ...options } = hostConfig<CronHostConfig>();
const tell = (message: CronMessage): void => report(message);

const mutex = new LockTable(options).mutex(name);
for (;;) {
  try {
    const turn = await mutex.tryRun(async ({ tick, attempt }) => {
      const run = { tick, attempt };
      tell({ kind: "began", ...run });
      await sleep(jobMs);
      tell({ kind: "ended", ...run });
      return run;
    }, ask);
    tell({
      kind: "answered",
      ...(turn.ran ? { because: "ran", ...turn.value } : { because: turn.because, remembered: turn.row?.tick }),
    });
  } catch (error) {
    tell({ kind: "answered", because: "failed", error: String(error) });
  }
  await sleep(200);
}
