import type { Clock } from "./clock.js";
import { publish } from "./diagnostics.js";
import type { Grant, Target } from "./grant.js";
import type { Host } from "./host.js";
import { releaseRow } from "./release.js";
import { endAfter, persist } from "./retry.js";
import { attemptMs } from "./stamp.js";

/** How often a put whose arrival is uncertain is looked for. */
export const LOOK_EVERY_MS = 400;

/** How long it is looked for, once nobody wants it. What arrives later ends at its own stamp, and nobody believes in it. */
export const LOOK_FOR_MS = 10_000;

/** What identifies a claim, once nobody wants it. */
type Withdrawn = Pick<Grant, "uuid" | "kept" | "sentAt" | "expires">;

/**
 * Takes back a lock that nobody waits for any more. Runs in the background: the caller has had its answer.
 *
 * Where it is not certain that the claim arrived, a refused delete proves nothing: the network may still deliver
 * the claim. So the row is looked at for a while.
 * @returns whether the claim has arrived, as far as is known.
 */
export async function withdraw(
  host: Host,
  target: Target,
  grant: Withdrawn,
  { certain }: { readonly certain: boolean },
): Promise<boolean> {
  const { clock, closing } = host;
  const { ttlMs, releaseWithinMs } = target.settings;
  const leaseEnds = grant.sentAt + ttlMs;
  if (certain) {
    const end = Math.max(leaseEnds, clock.atMost() + attemptMs(ttlMs));
    const until = host.untilClosed(() => end, releaseWithinMs);
    await releaseRow(host, { name: target.name, uuid: grant.uuid, kept: grant.kept, ttlMs }, until);
    return true;
  }
  try {
    const lookUntil = endAfter(clock, LOOK_FOR_MS);
    const until = host.untilClosed(endAfter(clock, Math.max(LOOK_FOR_MS, leaseEnds - clock.atMost())), releaseWithinMs);
    if (await remove(host, target, grant, until)) return true;
    while (clock.atMost() < lookUntil() && !isOver(clock, grant) && !closing.aborted) {
      await clock.sleep(LOOK_EVERY_MS, closing).catch(() => undefined);
      if (await remove(host, target, grant, until)) return true;
    }
  } catch (cause) {
    publish("dynamutex:release-failed", { name: target.name, uuid: grant.uuid, cause });
  }
  return false;
}

/** Whether the claim, if it arrived now, would make a row that is over. */
function isOver(clock: Clock, { expires }: Withdrawn): boolean {
  const bounds = clock.wall();
  return bounds !== undefined && expires < bounds.earliest;
}

/** @returns whether the row was ours and is gone. */
async function remove(
  host: Host,
  { name, settings }: Target,
  { uuid, kept }: Withdrawn,
  until: () => number,
): Promise<boolean> {
  const { clock, store, random, closing } = host;
  const { ttlMs } = settings;
  const persistence = { until, attemptMs: attemptMs(ttlMs), random, enough: closing };
  const row = await persist(clock, persistence, (signal) => store.read(name, { consistent: true }, signal));
  if (row?.uuid !== uuid) return false;
  return (await releaseRow(host, { name, uuid, kept, ttlMs }, until)).kind === "released";
}
