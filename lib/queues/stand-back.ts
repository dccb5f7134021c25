import type { MutexSettings } from "../options/mutex.js";
import type { Row } from "../protocol/row.js";
import type { OthersTurn } from "../session/contention.js";
import { attemptMs, sendOnce } from "../session/requests.js";
import type { Session } from "../session/session.js";
import type { Target } from "../taking/acquisition.js";
import type { Wait } from "../taking/wait.js";

/** What a look has shown. One that failed tells nothing: if the table is out of reach, other requests find out. */
type Look =
  | { readonly failed: false; readonly row: Row | undefined }
  | { readonly failed: true; readonly row: undefined };

/** The row as it is now, or nearly: half a read unit. */
export async function look(session: Session, { at, settings }: Target, enough?: AbortSignal): Promise<Look> {
  const request = { kind: "read", attemptMs: attemptMs(settings.ttlMs), enough } as const;
  try {
    const row = await sendOnce(session, request, (signal) => session.store.read(at, { consistent: false }, signal));
    return { failed: false, row };
  } catch {
    return { failed: true, row: undefined };
  }
}

/**
 * Leaves a row to others until they have had their turn. Looks in between whether one of them has taken it.
 * @throws what ended the wait.
 */
export async function standBack(
  session: Session,
  settings: MutexSettings,
  { enough }: Wait,
  { at, lookAt, until }: OthersTurn,
): Promise<void> {
  const { clock, owner } = session;
  const contention = session.contended();
  const lookInMs = lookAt - clock.atLeast();
  if (lookInMs > 0) {
    await clock.sleep(lookInMs, enough);
    const { row, failed } = await look(session, { at, settings }, enough);
    // What this process has left there itself has its owner, and no uuid.
    if (row !== undefined && (row.uuid !== undefined || row.owner !== owner)) contention.waitsFor(row);
    else if (!failed) contention.nobodyCame(at);
  }
  const restMs = until - clock.atLeast();
  if (restMs > 0) await clock.sleep(restMs, enough);
}
