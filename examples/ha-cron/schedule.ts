import { setTimeout as sleep } from "node:timers/promises";

/**
 * The ticks of a schedule, in epoch ms, each when it is due. One that is due while the caller is busy is left out.
 *
 * @param stop ends the ticking.
 */
export async function* ticks(everyMs: number, stop: AbortSignal): AsyncGenerator<number, void, undefined> {
  let last = 0;
  for (;;) {
    // A timer may ring a little early, and must not make the same tick twice.
    const next = Math.max(last, Math.floor(Date.now() / everyMs)) + 1;
    await sleep(next * everyMs - Date.now(), undefined, { signal: stop }).catch(() => undefined);
    if (stop.aborted) return;
    yield next * everyMs;
    last = next;
  }
}
