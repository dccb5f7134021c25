import { failures, tableSign } from "./files.js";
import type { Defects } from "./patch.js";

/** Defects of who is believed, and of what counts as certain. */
export const NETWORK_DEFECTS: Defects = {
  "somebody else's reply is an answer": [
    tableSign(/return RANKS\[sign\] <= RANKS\[this\.#required\];/g, "return true;"),
  ],
  "any success proves a grant": [tableSign(/return this\.#required === "type";/g, "return true;")],
  "a reply that cannot be read is final, and certain": [
    failures(/const isSilence = hasLeft === true && !answered;/g, "const isSilence = false;"),
  ],
};
