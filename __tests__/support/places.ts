import { ticketOf } from "../../lib/protocol/addresses.js";
import type { Row } from "../../lib/protocol/row.js";
import type { MemoryTable } from "../../lib/testing/memory-table.js";

/** The rows of those who wait for a lock, in the order of their tickets. */
export function placesIn(table: MemoryTable, name: string): readonly Row[] {
  const places = table.rows.filter((row) => row.name === name && ticketOf(row.sort) !== undefined);
  return places.sort((one, other) => (one.sort < other.sort ? -1 : 1));
}
