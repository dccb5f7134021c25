import { watch } from "./eventually.js";
import type { ManualTime } from "./manual-time.js";

/** Lets whoever is at work sleep as often as it likes until it is done. Requests get their answers before time passes. */
export async function sleptThrough(time: ManualTime, work: Promise<unknown>): Promise<void> {
  const watched = watch(work);
  await time.sleepUntil(() => watched.settled);
}

/** What the work comes to, if it takes no time but pauses. */
export async function afterSleeps<T>(time: ManualTime, work: Promise<T>): Promise<T> {
  await sleptThrough(time, work);
  return await work;
}

/** Lets all time pass until it is done: where requests get no answer. */
export async function timedOut(time: ManualTime, work: Promise<unknown>): Promise<void> {
  const watched = watch(work);
  await time.passUntil(() => watched.settled);
}
