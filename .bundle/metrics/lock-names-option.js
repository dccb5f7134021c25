import * as z from "zod/mini";
export const lockNamesOption = () => z.optional(z.custom((value) => typeof value === "boolean" || typeof value === "function", "must be a boolean, or a function that makes a label of a name"));
