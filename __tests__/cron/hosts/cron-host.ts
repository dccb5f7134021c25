import { setTimeout as sleep } from "node:timers/promises";
import { LockTable, type TryRunOptions } from "../../../lib/index.js";
import { timers } from "../../../lib/time/clock.js";
import { tableClockOn } from "../../../lib/time/table-clock.js";
import { hostConfig, report } from "../../support/host-process.js";
import { now } from "../../support/monotonic.js";

export interface CronHostConfig {
  readonly tableName: string;
  readonly ttlMs: number;
  /** By how much the clock of the host is ahead of the others'. */
  readonly aheadMs: number;
  /** How fast time goes for the library, as against the real one. */
  readonly speed: number;
  /** Real milliseconds. */
  readonly jobMs: number;
  readonly pauseMs: number;
  /** What it asks for, one after the other; the last one again and again, if so. */
  readonly asks: readonly TryRunOptions[];
  readonly endless: boolean;
  /** Every so many-th job throws. */
  readonly throwsEvery?: number;
}

/** What happened to one of its asks. Times are on the stopwatch that all processes share. */
export interface CronMessage {
  readonly kind: "asking" | "began" | "ended" | "answered";
  readonly ask: number;
  readonly at: number;
  readonly tick?: number | undefined;
  readonly attempt?: number | undefined;
  readonly because?: "ran" | "threw" | "held" | "done" | "gave-up" | "superseded" | "failed";
  readonly remembered?: number | undefined;
  /** How wide the bounds of the host's clock are; undefined while it knows nothing. */
  readonly doubtMs?: number | undefined;
  readonly [other: string]: unknown;
}

const config = hostConfig<CronHostConfig>();
const { speed, aheadMs, asks } = config;
const tell = (kind: CronMessage["kind"], ask: number, more: Partial<CronMessage> = {}): void =>
  report({ kind, ask, at: now(), doubtMs: doubt(), ...more } satisfies CronMessage);

const startedAt = Date.now();
const clock = tableClockOn({
  time: {
    monotonic: () => performance.now() * speed,
    wall: () => startedAt + Math.floor(performance.now() * speed) + aheadMs,
  },
  sleep: (ms, signal) => timers.sleep(ms / speed, signal),
  alarm: (ms, ring) => timers.alarm(ms / speed, ring),
});

function doubt(): number | undefined {
  const bounds = clock.wall();
  return bounds && bounds.latest - bounds.earliest;
}

const locks = new LockTable({ tableName: config.tableName, ttlMs: config.ttlMs, clock });
const mutex = locks.mutex("job");
let jobs = 0;

for (let ask = 0; config.endless || ask < asks.length; ask++) {
  const options = asks[Math.min(ask, asks.length - 1)];
  let threw = false;
  let run: Pick<CronMessage, "tick" | "attempt"> = {};
  tell("asking", ask);
  try {
    const turn = await mutex.tryRun(async ({ tick, attempt }) => {
      run = { tick, attempt };
      tell("began", ask, run);
      await sleep(config.jobMs);
      tell("ended", ask, run);
      jobs += 1;
      threw = config.throwsEvery !== undefined && jobs % config.throwsEvery === 0;
      if (threw) throw new Error("the job has failed");
    }, options);
    tell(
      "answered",
      ask,
      turn.ran ? { because: "ran", ...run } : { because: turn.because, remembered: turn.row?.tick },
    );
  } catch (error) {
    tell("answered", ask, { because: threw ? "threw" : "failed", ...run, error: String(error) });
  }
  await sleep(config.pauseMs * (0.5 + Math.random()));
}
await locks.close();
