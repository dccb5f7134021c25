import { all, any, equal, holds, less, missing } from "./conditions.js";
export const HAS_EXPIRED = less("expires", { value: "earliest" });
export const IS_SEEN_LEASE = all(equal("uuid", { value: "seenUuid" }), equal("expires", { value: "seenExpires" }));
export const IS_UNCHANGED_LEASE = any(HAS_EXPIRED, IS_SEEN_LEASE);
export const IS_UNCHANGED_HOLD = any(HAS_EXPIRED, all(missing("uuid"), equal("expires", { value: "seenExpires" })));
export function mayTake(row, { earliest, unchanged }) {
    if (row === undefined)
        return true;
    const { uuid, expires } = row;
    if (unchanged === undefined)
        return holds(HAS_EXPIRED, { uuid, expires }, { earliest });
    const condition = unchanged.uuid === undefined ? IS_UNCHANGED_HOLD : IS_UNCHANGED_LEASE;
    const values = { earliest, seenUuid: unchanged.uuid, seenExpires: unchanged.expires };
    return holds(condition, { uuid, expires }, values);
}
