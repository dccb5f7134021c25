import { publish } from "../diagnostics.js";
import { LockStoreError } from "../errors.js";
import { lossOf } from "../taking/row-lease.js";
import { record } from "../taking/row-writes.js";
export async function recordSuccess(session, row, run, until) {
    const recorded = await record(session, row, run, until);
    if (recorded.kind === "ok")
        return;
    const isKnown = recorded.kind === "lost";
    const cause = isKnown ? lossOf(row, recorded.why) : recorded.cause;
    const { at, uuid } = row;
    publish("dynamutex:not-recorded", { name: at.name, uuid, ...run, isKnown, cause });
    const what = isKnown
        ? "its success was not recorded: the next host that asks runs it again"
        : "it is not known whether its success was recorded: if it was not, the next host that asks runs it again";
    const ran = `Lock ${JSON.stringify(at.name)}: attempt ${run.attempt} at tick ${run.tick} ran to its end`;
    throw new LockStoreError(`${ran}, and ${what}`, { cause });
}
