import { looksFreeIn } from "../taking/claim.js";
import { Polling } from "../taking/polling.js";
import { untilFree } from "../taking/watch.js";
import { Kind, rowTarget, takeRow } from "./kind.js";
import { grantedUnless, lookForReaders, WRITER_GATE } from "./shared-mutex-rows.js";
const WAITING_WRITER = { abort: () => undefined };
export class ExclusiveSide extends Kind {
    id = "exclusive";
    rowDecides = false;
    queue = {
        ...WRITER_GATE,
        side: "exclusive",
        room: (seeing, resource, rows) => (looksFreeIn(seeing, rowTarget(resource), rows) ? 1 : 0),
        weight: () => 1,
    };
    async claim(claimed) {
        const result = await takeRow(this.session, claimed);
        if (result.kind !== "granted")
            return result;
        return await grantedUnless(this.session, result.granted, (own) => this.#readerInTheWay(own, claimed));
    }
    async #readerInTheWay({ lease, resource }, { wait, onTaken }) {
        const polling = new Polling(this.session, resource.settings.poll);
        lease.keep();
        lease.watch(WAITING_WRITER);
        while (lease.held) {
            const { found, alive } = await lookForReaders(this.session, resource, wait);
            wait.endSignal.throwIfAborted();
            if (!lease.held)
                break;
            if (alive !== undefined) {
                const target = { ...resource, at: alive };
                wait.saw(alive);
                if (!wait.isPatient)
                    return { target, row: alive };
                onTaken?.();
                await polling.pause(wait, untilFree(this.session, wait, target, alive));
            }
            else if (found) {
                await wait.again();
            }
            else {
                lease.endSection(WAITING_WRITER);
                break;
            }
        }
        return undefined;
    }
}
