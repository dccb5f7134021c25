import { setTimeout as sleep } from "node:timers/promises";
import { LockTable, type TryRunOptions, tableClock } from "../../../../lib/index.js";
import { hostConfig, report } from "../../../support/host-process.js";
import { now } from "../../../support/monotonic.js";

export interface CronHostConfig {
  readonly tableName: string;
  readonly name: string;
  readonly ttlMs: number;
  readonly jobMs: number;
  /** What it asks for, again and again. */
  readonly ask: TryRunOptions;
  /** Every so many-th job throws. Default: none. */
  readonly throwsEvery?: number | undefined;
}

/** What happened to one of its asks. Times are on the stopwatch that all processes share. */
export interface CronMessage {
  readonly kind: "asking" | "began" | "ended" | "answered";
  readonly ask: number;
  readonly at: number;
  /** How wide the bounds of the host's clock are; undefined while it knows nothing. */
  readonly doubtMs?: number | undefined;
  readonly tick?: number | undefined;
  readonly attempt?: number | undefined;
  readonly because?: "ran" | "threw" | "held" | "done" | "gave-up" | "superseded" | "failed";
  readonly remembered?: number | undefined;
  readonly [other: string]: unknown;
}

const { name, jobMs, ask: options, throwsEvery = Number.POSITIVE_INFINITY, ...table } = hostConfig<CronHostConfig>();
const clock = tableClock();
const mutex = new LockTable({ ...table, clock }).mutex(name);
let jobs = 0;

for (let ask = 0; ; ask += 1) {
  const tell = (kind: CronMessage["kind"], more: Partial<CronMessage> = {}): void => {
    const bounds = clock.wall();
    report({ kind, ask, at: now(), doubtMs: bounds && bounds.latest - bounds.earliest, ...more } satisfies CronMessage);
  };
  let run: Pick<CronMessage, "tick" | "attempt"> = {};
  let threw = false;
  tell("asking");
  try {
    const turn = await mutex.tryRun(async ({ tick, attempt }) => {
      run = { tick, attempt };
      tell("began", run);
      await sleep(jobMs);
      tell("ended", run);
      jobs += 1;
      threw = jobs % throwsEvery === 0;
      if (threw) throw new Error("the job has failed");
    }, options);
    tell("answered", turn.ran ? { because: "ran", ...run } : { because: turn.reason, remembered: turn.holder?.tick });
  } catch (error) {
    tell("answered", { because: threw ? "threw" : "failed", ...run, error: String(error) });
  }
  await sleep(200 * (0.5 + Math.random()));
}
