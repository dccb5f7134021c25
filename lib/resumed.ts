import { parseToken } from "./holding/hand-off-token.js";
import { HeldLock } from "./holding/handle.js";
import { Lease } from "./holding/lease.js";
import { type ResumeOptions, resumeOptions } from "./options/calls.js";
import type { Address } from "./protocol/addresses.js";
import type { Session } from "./session/session.js";
import { giveBack } from "./taking/abandoned-claims.js";
import type { Target } from "./taking/acquisition.js";
import { handedOff, leftOf, restOf, resume } from "./taking/resume.js";
import { tooSlow } from "./taking/too-slow.js";
import { Wait } from "./taking/wait.js";

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
  const { at, uuid } = parseToken(token, session.table, isOurs);
  signal?.throwIfAborted();
  const wait = new Wait(session, at.name, { patient: false, asksFor: 1 });
  const work = async (deliver: (lock: HeldLock) => boolean): Promise<void> => {
    const handed = await handedOff(session, at, uuid, wait);
    const acquisition = await resume(session, targetOf(at), handed, wait);
    const lease = new Lease(session, acquisition);
    if (!wait.isOver && (await lease.secure(wait)) && !wait.isOver) {
      lease.keep();
      lease.holdOn(restOf(session, handed));
      const end = (ended: Lease) => ended.release();
      const { acquired, tick } = acquisition;
      const lock = new HeldLock({ session, lease, acquired, tick, end, mayHandOff: true });
      if (deliver(lock)) return lock.delivered(wait);
      session.detach(lease.release());
    } else {
      session.detach(giveBack(session, acquisition, () => leftOf(session, handed)));
    }
    wait.throwIfEnough();
    throw tooSlow(at.name, acquisition.settings);
  };
  return await wait.run(work, { signal, waitMs: Number.POSITIVE_INFINITY });
}
