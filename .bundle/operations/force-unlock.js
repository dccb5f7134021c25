import { publish } from "../diagnostics.js";
import { forceUnlockOptions } from "../options/calls.js";
import { wasApplied } from "../protocol/was-applied.js";
import { Copies } from "../session/requests.js";
import { rowsOf } from "../session/session.js";
import { adminRequest } from "./admin-request.js";
import { rowsIn } from "./inspect.js";
export async function forceUnlock(session, { name, sort }, uuid, options) {
    const { now } = forceUnlockOptions(uuid, options);
    const copies = new Copies();
    const leaves = { kind: now ? "kept" : "untilExpires" };
    const write = { kind: "vacate", at: { name, sort }, uuid, leaves, remembers: "nothing" };
    const outcome = await adminRequest(session, (signal) => copies.count(session.store.write(write, signal)));
    if (outcome.kind === "refused") {
        const earlierCopyUnanswered = outcome.retried || copies.sent > 1;
        if (wasApplied(write, outcome.row, { earlierCopyUnanswered }) !== "yes")
            return false;
    }
    publish("dynamutex:forced", { name, uuid, now });
    for (const lease of session.leases)
        if (rowsOf(lease.row).some((row) => row.uuid === uuid))
            lease.lose("forced");
    return true;
}
export async function forceUnlockIn(session, name, range, uuid, options) {
    forceUnlockOptions(uuid, options);
    const { rows } = await rowsIn(session, name, range, { consistent: true });
    const held = rows.find((row) => row.uuid === uuid);
    return held !== undefined && (await forceUnlock(session, held, uuid, options));
}
