import type { Diagnostics, LossReason } from "../index.js";
import type { Instruments } from "./instruments.js";
import { eventOf, WARNINGS } from "./requests.js";

type Failure = Diagnostics["dynamutex:failed"]["because"];

const REASONS: Readonly<Record<LossReason, true>> = {
  expired: true,
  stolen: true,
  deleted: true,
  forced: true,
  "max-hold": true,
  closed: true,
};

const FAILURES: Readonly<Record<Failure, object>> = { aborted: {}, closed: {}, error: { "error.type": "LOCK_STORE" } };

/**
 * Lets the counters that alarms look at begin at 0. One that is not there before the first loss is 1 when it is first seen, and
 * whoever asks by how much it has grown since is told: by nothing.
 */
export function startAtZero({ losses, failures, warnings }: Instruments): void {
  for (const reason of Object.keys(REASONS)) losses.add(0, { "dynamutex.reason": reason });
  for (const [because, type] of Object.entries(FAILURES)) failures.add(0, { "dynamutex.because": because, ...type });
  for (const channel of WARNINGS) warnings.add(0, { "dynamutex.event": eventOf(channel) });
}
