import type { MutexSettings } from "../options/mutex.js";
import { attemptMs } from "../protocol/lease-time.js";
import { endAfter } from "../session/retry.js";
import type { Host } from "../session/session.js";
import type { Clock } from "../time/clock.js";

/** How often a row whose arrival is uncertain is looked for. */
const LOOK_EVERY_MS = 400;

/** How long it is looked for, once nobody wants it. What arrives later ends at its own stamp, and nobody believes in it. */
const LOOK_FOR_MS = 10_000;

/** A row that the network may still deliver. */
interface Expected {
  readonly expires: number;
  /** When the first copy of it was sent, on `atMost`. */
  readonly sentAt: number;
}

/**
 * Looks for a row that may still arrive, until it has been found, or would be over on its arrival, or for long enough.
 *
 * @param look is told until when its requests may be tried, which outlasts the last look; answers whether it found the row.
 * @returns whether the row was found. @throws what `look` throws.
 */
export async function lookOut(
  host: Host,
  { ttlMs, releaseWithinMs, takeover }: MutexSettings,
  expected: Expected,
  look: (until: () => number) => Promise<boolean>,
): Promise<boolean> {
  const { clock, closing } = host;
  const lookUntil = endAfter(clock, LOOK_FOR_MS);
  const tryForMs = Math.max(LOOK_FOR_MS + LOOK_EVERY_MS + attemptMs(ttlMs), expected.sentAt + ttlMs - clock.atMost());
  const until = host.untilClosed(tryForMs, releaseWithinMs);
  while (!(await look(until))) {
    // Whoever takes over by watching waits for a whole ttl, however long a row has been over.
    const isHarmless = takeover !== "unchanged" && isOver(clock, expected);
    if (clock.atMost() >= lookUntil() || isHarmless || closing.aborted) return false;
    await clock.sleep(LOOK_EVERY_MS, closing).catch(() => undefined);
  }
  return true;
}

function isOver(clock: Clock, { expires }: Expected): boolean {
  const bounds = clock.wall();
  return bounds !== undefined && expires < bounds.earliest;
}
