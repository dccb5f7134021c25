import { MUTEX_QUEUE } from "../protocol/addresses.js";
import { looksFreeIn } from "../taking/claim.js";
import { Kind, type QueueRules, rowTarget } from "./kind.js";

/** The lock's row and the first two places: the second place tells whether anybody waits behind the first. */
const LOOK_LIMIT = 3;

/** A mutex is one row: its holder has the lock. */
export class MutexKind extends Kind {
  readonly id = "mutex";
  readonly queue: QueueRules = {
    keys: MUTEX_QUEUE,
    lookLimit: () => LOOK_LIMIT,
    gateRows: (_resource, rows) => rows,
    room: (resource, rows) => (looksFreeIn(this.session, rowTarget(resource), rows) ? 1 : 0),
    weight: () => 1,
    together: () => 1,
  };
}
