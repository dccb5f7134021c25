import type { Attributes } from "../../../lib/protocol/row.js";

/** The rows of the one name, by their sort keys, in the order of these. */
export type Rows = Readonly<Record<string, Attributes>>;

export const NO_ROWS: Rows = {};

/** The rows with this one in the place of what was there. */
export function withRow(rows: Rows, sort: string, row: Attributes | undefined): Rows {
  if (rows[sort] === row) return rows;
  const others = Object.entries(rows).filter(([key]) => key !== sort);
  const all = row === undefined ? others : [...others, [sort, row] as const];
  return Object.fromEntries(all.sort(([one], [other]) => (one < other ? -1 : 1)));
}

/** The same text for the same rows, and for no others. */
export function rowsText(rows: Rows): string {
  return Object.entries(rows).reduce((text, [sort, row]) => `${text}${sort}=${rowText(row)},`, "");
}

/** Of a row only what differs between rows of one exploration. */
export function rowText(row: Attributes | undefined): string {
  return row === undefined ? "-" : `${row.uuid}:${row.expires}:${row.ttlMs}:${row.fence}`;
}
