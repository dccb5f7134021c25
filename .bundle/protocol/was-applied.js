import { memoryOf } from "./rules.js";
export function wasApplied(write, refusedBy, { earlierCopyUnanswered } = { earlierCopyUnanswered: true }) {
    switch (write.kind) {
        case "take":
        case "reissue":
            return isStillHeldBy(write.uuid, refusedBy) ? "yes" : "no";
        case "renew":
            return isStillHeldBy(write.uuid, refusedBy) && refusedBy?.expires === write.expires ? "yes" : "no";
        case "transfer":
            if (isStillHeldBy(write.uuid, refusedBy))
                return "yes";
            return earlierCopyUnanswered && !isStillHeldBy(write.from, refusedBy) ? "maybe" : "no";
        case "vacate":
            if (!earlierCopyUnanswered || isStillHeldBy(write.uuid, refusedBy))
                return "no";
            return isLeftBy(write, refusedBy) ? "yes" : "maybe";
        case "record":
            if (refusedBy?.tick !== write.tick)
                return earlierCopyUnanswered ? "maybe" : "no";
            return refusedBy.due !== write.tick && refusedBy.attempt === write.attempt ? "yes" : "no";
        case "remove":
        case "put-result":
        case "want":
        case "draw":
        case "check":
            return "no";
        default:
            return write;
    }
}
function isLeftBy({ leaves }, row) {
    if (row === undefined || row.uuid !== undefined)
        return false;
    if (leaves.kind === "untilExpires")
        return true;
    return row.expires === (leaves.kind === "held" ? leaves.expires : 0);
}
export function isStillHeldBy(uuid, row) {
    return row?.uuid === uuid;
}
export function vacateKept(write, refusedBy) {
    if (write.kind !== "vacate" || write.remembers !== "nothing" || write.leaves.kind !== "free")
        return undefined;
    const remembers = memoryOf(refusedBy);
    return isStillHeldBy(write.uuid, refusedBy) && remembers !== "nothing" ? { ...write, remembers } : undefined;
}
