import { memoryOf, type Row } from "./row.js";
import type { Vacate, Write } from "./writes.js";

/**
 * What to send after a delete that was refused by its own uuid, because the row remembers something that the writer did
 * not know of: the same for a row that is kept. Undefined for every other refusal.
 *
 * The delete changed nothing, and no late copy of it will: what a row remembers, it remembers for ever.
 */
export function vacateKept(write: Write, refusedBy: Row | undefined): Vacate | undefined {
  if (write.kind !== "vacate" || write.remembers !== "nothing" || write.leaves.kind !== "free") return undefined;
  const remembers = memoryOf(refusedBy);
  return refusedBy?.uuid === write.uuid && remembers !== "nothing" ? { ...write, remembers } : undefined;
}
