import { publish } from "../diagnostics.js";
import { attemptMs } from "../protocol/lease-time.js";
import { persist } from "../session/retry.js";
import type { Host } from "../session/session.js";
import type { Grant, Target } from "./grant.js";
import { lookOut } from "./look-out.js";
import { releaseRow } from "./release.js";

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
  const { clock } = host;
  const { name, settings } = target;
  const { uuid, kept, sentAt } = grant;
  if (certain) {
    const { ttlMs, releaseWithinMs } = settings;
    const leftMs = Math.max(sentAt + ttlMs - clock.atMost(), attemptMs(ttlMs));
    await releaseRow(host, { name, uuid, kept, ttlMs }, host.untilClosed(leftMs, releaseWithinMs));
    return true;
  }
  try {
    return await lookOut(host, settings, grant, (until) => remove(host, target, grant, until));
  } catch (cause) {
    publish("dynamutex:release-failed", { name, uuid, cause });
    return false;
  }
}

/** @returns whether the row was ours and is gone. */
async function remove(
  host: Host,
  { name, settings }: Target,
  { uuid, kept }: Withdrawn,
  until: () => number,
): Promise<boolean> {
  const { store, random } = host;
  const { ttlMs } = settings;
  const persistence = { kind: "read", until, attemptMs: attemptMs(ttlMs), random } as const;
  const row = await persist(host, persistence, (signal) => store.read(name, { consistent: true }, signal));
  if (row?.uuid !== uuid) return false;
  return (await releaseRow(host, { name, uuid, kept, ttlMs }, until)).kind === "released";
}
