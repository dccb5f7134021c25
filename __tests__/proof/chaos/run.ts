import { setMaxListeners } from "node:events";
import { type ChaosReport, reportOn } from "./chaos-report.js";
import { TTL_MS } from "./lock-groups.js";
import { type MischiefCounts, makeMischief, pause } from "./mischief.js";
import { type StageOptions, setStage } from "./stage.js";

export interface ChaosOptions extends StageOptions {
  /** How long at least, counted from when every host was in a section once. */
  readonly seconds: number;
  /** What has to have happened before it ends, on a machine that is slow; at most four times `seconds`. */
  readonly until?: (soFar: ChaosReport) => boolean;
  /** Decides what happens when; what comes of it depends on the machine as well. */
  readonly seed: number;
  /** Called every ten seconds. */
  readonly onProgress?: (soFar: ChaosReport) => void;
}

/** Several processes under every fault there is; then an independent check of what they wrote. */
export async function runChaos(options: ChaosOptions): Promise<ChaosReport> {
  const { seconds, until = () => true, seed, onProgress } = options;
  await using stage = await setStage(options);
  await stage.allInSectionOnce();
  const chaos = stage.proxy.chaos(seed);
  const hosts = { hostKilled: 0, hostClosed: 0, hostSuspended: 0, hostCutOff: 0, connectionsKilled: 0 };
  const mischief: MischiefCounts = { ...hosts, engineKilled: 0, engineDownMs: 0 };
  const startedAt = performance.now();
  const report = (violations: readonly string[] = []): ChaosReport =>
    reportOn({ slots: stage.slots, chaos, mischief, ms: performance.now() - startedAt, violations });

  const stopping = new AbortController();
  // Each kind of mischief waits with it.
  setMaxListeners(0, stopping.signal);
  const engineEveryMs = [5_000, Math.min(30_000, 500 * seconds)] as const;
  const whole = makeMischief({ ...stage, engineEveryMs, ttlMs: TTL_MS, seed }, mischief, stopping.signal);
  whole.catch(() => stopping.abort());
  const isOver = (second: number): boolean => second >= seconds && (second >= 8 * seconds || until(report()));
  for (let second = 1; !stopping.signal.aborted && !isOver(second); second++) {
    await pause(1_000, stopping.signal);
    if (second % 10 > 0) continue;
    stage.proxy.reset();
    onProgress?.(report());
  }
  stopping.abort();
  await whole;
  chaos.stop();
  return report(await stage.judge());
}
