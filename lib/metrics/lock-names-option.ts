import * as z from "zod/mini";
import type { LockNames } from "./labels.js";

/** The schema of the option that every backend has. */
export const lockNamesOption = (): z.ZodMiniType<LockNames | undefined> =>
  z.optional(
    z.custom<LockNames>(
      (value) => typeof value === "boolean" || typeof value === "function",
      "must be a boolean, or a function that makes a label of a name",
    ),
  );
