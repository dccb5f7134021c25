import { publish } from "../diagnostics.js";
import type { Host } from "../session/session.js";
import type { WriteOutcome } from "../store.js";
import type { Target } from "../taking/grant.js";
import { ask } from "./admin-request.js";

/**
 * Takes a holder's uuid off its row. Whatever of the holder's own is still under way asks for that uuid, so it comes to
 * nothing; so does a late copy of this very request.
 *
 * @returns whether the uuid held the lock until now. @throws the store's error.
 */
export async function forceUnlock(
  host: Host,
  { name }: Target,
  uuid: string,
  { now }: { readonly now: boolean },
): Promise<boolean> {
  let attempts = 0;
  const outcome = await ask(host, (signal, attempt) => {
    attempts = attempt;
    return host.store.force(name, uuid, { now }, signal);
  });
  if (!isDone(outcome, attempts, now)) return false;
  publish("dynamutex:forced", { name, uuid, now });
  return true;
}

/** Refused by a row without a uuid after a copy whose answer was lost: that copy has done it. */
function isDone(outcome: WriteOutcome, attempts: number, now: boolean): boolean {
  if (outcome.kind === "applied") return true;
  const { row, retried } = outcome;
  const mayHaveBeenUs = retried || attempts > 1;
  return mayHaveBeenUs && row !== undefined && row.uuid === undefined && (!now || row.expires === 0);
}
