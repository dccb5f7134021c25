import { parseToken } from "./holding/hand-off-token.js";
import { HeldLock } from "./holding/handle.js";
import { Lease } from "./holding/lease.js";
import { type ResumeOptions, resumeOptions } from "./options/calls.js";
import type { Address } from "./protocol/addresses.js";
import { holdUntil } from "./protocol/lease-time.js";
import type { Session } from "./session/session.js";
import { giveBack } from "./taking/abandoned-claims.js";
import type { Target } from "./taking/acquisition.js";
import { resume } from "./taking/resume.js";
import { tooSlow } from "./taking/too-slow.js";
import { Wait } from "./taking/wait.js";
import { boundsOf } from "./time/clock.js";

/**
 * A lock that was handed off, for a section of this process.
 *
 * @param isOurs whether a row is one of this lock.
 * @param targetOf how its lease is kept from here on.
 */
export async function resumed(
  session: Session,
  token: string,
  options: ResumeOptions,
  isOurs: (at: Address) => boolean,
  targetOf: (at: Address) => Target,
): Promise<HeldLock> {
  const { signal } = resumeOptions(options);
  session.assertOpen();
  const { at, heldUntil: expires, heldForMs: ms, ...handed } = parseToken(token, session.table, isOurs);
  signal?.throwIfAborted();
  const wait = new Wait(session, at.name, { patient: false, asksFor: 1 });
  const work = async (deliver: (lock: HeldLock) => boolean): Promise<void> => {
    const acquisition = await resume(session, targetOf(at), handed, wait);
    const lease = new Lease(session, acquisition);
    if (!wait.isOver && (await lease.secure()) && !wait.isOver) {
      const { clock } = session;
      lease.keep();
      if (expires !== undefined && ms !== undefined)
        lease.holdOn(holdUntil({ expires, ms }, clock.atLeast(), boundsOf(clock)));
      const end = (ended: Lease) => ended.release();
      const { acquired, tick } = acquisition;
      const lock = new HeldLock({ session, lease, acquired, tick, end, mayHandOff: true });
      if (deliver(lock)) return lock.delivered(wait);
      session.detach(lease.release());
    } else {
      session.detach(giveBack(session, acquisition));
    }
    wait.throwIfEnough();
    throw tooSlow(at.name, acquisition.settings);
  };
  return await wait.run(work, { signal, waitMs: Number.POSITIVE_INFINITY });
}
