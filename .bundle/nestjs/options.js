import * as z from "zod/mini";
import { lockShape, untilSuccess } from "../options/calls.js";
import { flag, optionsCheck, text } from "../options/check.js";
import { mutexShape } from "../options/mutex.js";
const nonEmpty = () => z.optional(text().check(z.refine(({ length }) => length > 0, "must be a non-empty string")));
const shapes = () => {
    const { signal: _, waitMs, ...ofSections } = lockShape();
    return { waitMs, both: { ...mutexShape(), ...ofSections, fencing: flag(), table: nonEmpty() } };
};
export const lockedOptions = optionsCheck(["@Locked()"], () => {
    const { waitMs, both } = shapes();
    return { ...both, waitMs };
});
export const oncePerOptions = optionsCheck(["@OncePer()"], () => {
    const { waitMs: _, ...both } = shapes().both;
    return { ...both, name: nonEmpty(), untilSuccess: untilSuccess() };
});
