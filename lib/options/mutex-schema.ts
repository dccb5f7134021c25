import { z } from "zod/v3";
import { duration, durationOrForever, flag } from "./check.js";

const mutexShape = () => ({
  ttlMs: duration(100).optional(),
  renewEveryMs: duration(1).optional(),
  safetyMarginMs: duration(1).optional(),
  autoRenew: flag(),
  maxHoldMs: durationOrForever(1).optional(),
  waitMs: durationOrForever(0).optional(),
  poll: z
    .object({ minMs: duration(1).optional(), maxMs: duration(1).optional() })
    .strict()
    .optional(),
  handOverMs: duration(1).optional(),
  releaseWithinMs: duration(1).optional(),
  fair: flag(),
  takeover: z
    .enum(["expired", "unchanged"], { errorMap: () => ({ message: 'must be "expired" or "unchanged"' }) })
    .optional(),
});

/** What a mutex may say, and these more. */
export const mutexSchemaWith = (more: z.ZodRawShape): z.ZodTypeAny => z.object({ ...mutexShape(), ...more }).strict();
