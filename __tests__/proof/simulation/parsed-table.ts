import type { Address } from "../../../lib/protocol/addresses.js";
import type { Attributes, Row } from "../../../lib/protocol/row.js";
import { MemoryTable } from "../../../lib/testing/memory-table.js";

/**
 * A table that parses each item once for the judges, who look after every step, when few rows have changed. Items never change,
 * and what travels to a process is parsed anew, as it is on its way from the engine.
 */
export class ParsedTable extends MemoryTable {
  /** Null for an item that is none of our rows. */
  readonly #rows = new WeakMap<Attributes, Row | null>();

  override row(at: Address): Row | undefined {
    const item = this.item(at);
    if (item === undefined) return undefined;
    const known = this.#rows.get(item);
    if (known !== undefined) return known ?? undefined;
    const row = super.row(at);
    this.#rows.set(item, row ?? null);
    return row;
  }
}
