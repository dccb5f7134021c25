import { inOurWords } from "./complaint.js";
import { EXIT } from "./exit-codes.js";
import { openTable, type TableArguments } from "./open-table.js";
import { painter, print, printable } from "./output.js";

/** Checks whether locks work on a table. @returns 0 if they do, 1 if not. */
export async function check(options: TableArguments): Promise<number> {
  const { locks } = openTable(options);
  await using _ = locks;
  const { tableName, usable, problems, table, batches } = await locks.check();
  const paint = painter();
  const lines = problems.map(({ severity, message }) =>
    paint(severity === "error" ? "red" : "yellow", printable(`${severity}: ${inOurWords(message)}`)),
  );
  if (usable && batches?.advice !== undefined) lines.push(`advice: ${inOurWords(batches.advice)}`);
  const what =
    table === undefined ? "" : `, ${table.billing}, ${table.sort === undefined ? "no sort key" : "with a sort key"}`;
  print(
    [...lines, `table ${printable(tableName)}: ${usable ? `usable${what}` : "locks do not work on it"}`, ""].join("\n"),
  );
  return usable ? EXIT.done : EXIT.no;
}
