import { watch } from "./eventually.js";
import type { ManualTime } from "./manual-time.js";

/** Lets whoever is at work sleep as often as it likes until it is done. Requests get their answers before time passes. */
export async function sleptThrough(time: ManualTime, work: Promise<unknown>): Promise<void> {
  const watched = watch(work);
  await time.sleepUntil(() => watched.settled);
}

/** Lets all time pass until it is done: where requests get no answer. */
export async function timedOut(time: ManualTime, work: Promise<unknown>): Promise<void> {
  const watched = watch(work);
  await time.passUntil(() => watched.settled);
}
