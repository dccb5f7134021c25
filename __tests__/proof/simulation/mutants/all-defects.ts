import type { Defects } from "./defect.js";
import { FEATURE_DEFECTS } from "./feature-defects.js";
import { HAND_OVER_DEFECTS } from "./hand-over-defects.js";
import { KIND_DEFECTS } from "./kind-defects.js";
import { NETWORK_DEFECTS } from "./network-defects.js";
import { PROMISE_DEFECTS } from "./promise-defects.js";
import { PROTOCOL_DEFECTS } from "./protocol-defects.js";
import { QUEUE_DEFECTS } from "./queue-defects.js";
import { TAKING_DEFECTS } from "./taking-defects.js";

/** All seeded defects, in the order of the report. */
export const DEFECTS: Defects = {
  ...PROTOCOL_DEFECTS,
  ...TAKING_DEFECTS,
  ...QUEUE_DEFECTS,
  ...HAND_OVER_DEFECTS,
  ...KIND_DEFECTS,
  ...FEATURE_DEFECTS,
  ...NETWORK_DEFECTS,
  ...PROMISE_DEFECTS,
};
