import { LOCK_SORT, MUTEX_QUEUE } from "../protocol/addresses.js";
import type { Session } from "../session/session.js";
import { type Claimed, claim, looksFreeIn, type RowsInTheWay } from "../taking/claim.js";
import type { Wait } from "../taking/wait.js";
import { type KeptOut, watch } from "../taking/watch.js";
import { type Kind, OwnLease, type QueueRules, type Resource, type ResourceClaim, targetOf } from "./kind.js";

/** The first place and the next, behind the row itself: whether anybody waits behind the first. */
const LOOK_LIMIT = 3;

/** A mutex: one row, and who has it has the lock. */
export class MutexKind implements Kind {
  readonly id = "mutex";
  readonly rowDecides = true;
  readonly isJoined = false;
  readonly queue: QueueRules;
  readonly #session: Session;

  constructor(session: Session) {
    this.#session = session;
    this.queue = {
      keys: MUTEX_QUEUE,
      gate: { first: LOCK_SORT, last: LOCK_SORT },
      lookLimit: () => LOOK_LIMIT,
      gateRows: (_resource, rows) => rows,
      room: (resource, rows) => (looksFreeIn(session, targetOf(resource), rows) ? 1 : 0),
      weight: () => 1,
      together: () => 1,
    };
  }

  async claim({ resource, wait, data, once, until }: ResourceClaim): Promise<Claimed<OwnLease>> {
    const claimed = await claim(this.#session, targetOf(resource), wait, { data, once, until });
    if (claimed.kind !== "granted") return claimed;
    return { kind: "granted", granted: new OwnLease(this.#session, resource, claimed.granted) };
  }

  watch(_resource: Resource, [first]: RowsInTheWay, wait: Wait, keptOut: KeptOut): Promise<undefined> {
    return watch(this.#session, first, wait, keptOut);
  }
}
