import type { Address } from "../../lib/protocol/addresses.js";
import type { Attributes, Row } from "../../lib/protocol/row.js";
import { MemoryTable } from "../../lib/testing/memory-table.js";

/**
 * A table that parses each item once for the judges, who look after every step, when few rows have changed. Items never change,
 * and what travels to a process is parsed anew, as it is on its way from the engine.
 */
export class ParsedTable extends MemoryTable {
  readonly #rows = new WeakMap<Attributes, Row | undefined>();

  override row(at: Address): Row | undefined {
    const item = this.item(at);
    if (item === undefined) return undefined;
    if (!this.#rows.has(item)) this.#rows.set(item, super.row(at));
    return this.#rows.get(item);
  }
}
