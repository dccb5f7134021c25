import type { ManualTime } from "./manual-time.js";

/** Lets whoever is at work sleep as often as it likes until it is done. Requests get their answers before time passes. */
export async function sleptThrough(time: ManualTime, work: Promise<unknown>): Promise<void> {
  await time.sleepUntil(settling(work));
}

/** Lets all time pass until it is done: where requests get no answer. */
export async function timedOut(time: ManualTime, work: Promise<unknown>): Promise<void> {
  await time.passUntil(settling(work));
}

function settling(work: Promise<unknown>): () => boolean {
  let settled = false;
  const settle = () => {
    settled = true;
  };
  work.then(settle, settle);
  return () => settled;
}
