import { MUTEX_QUEUE } from "../protocol/addresses.js";
import { looksFreeIn } from "../taking/claim.js";
import { Kind, rowTarget } from "./kind.js";
const LOOK_LIMIT = 3;
export class MutexKind extends Kind {
    id = "mutex";
    queue = {
        keys: MUTEX_QUEUE,
        lookLimit: () => LOOK_LIMIT,
        gateRows: (_resource, rows) => rows,
        room: (seeing, resource, rows) => (looksFreeIn(seeing, rowTarget(resource), rows) ? 1 : 0),
        weight: () => 1,
        together: () => 1,
    };
}
