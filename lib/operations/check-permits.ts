import type { CheckOptions } from "../options/calls.js";
import { PERMITS } from "../protocol/addresses.js";
import type { Session } from "../session/session.js";
import type { TableProblem } from "../table-report.js";
import { rowsIn } from "./inspect.js";

/** Of how many semaphores the rows are looked at. */
const MOST_LOOKED_AT = 100;

/**
 * The semaphores of this process of which another host knows another number of permits, by those who hold one; and the rows of
 * these that are not rows of ours.
 */
export async function permitProblems(session: Session, { signal }: CheckOptions): Promise<TableProblem[]> {
  const problems: TableProblem[] = [];
  for (const [name, permits] of [...session.semaphores].slice(-MOST_LOOKED_AT)) {
    const { rows, bad } = await rowsIn(session, name, PERMITS, { consistent: false, signal });
    for (const { message } of bad) problems.push({ code: "row", severity: "warning", message });
    const other = rows.find((row) => row.permits !== undefined && row.permits !== permits);
    if (other === undefined) continue;
    const message =
      `Semaphore ${JSON.stringify(name)} has ${permits} permits here and ${other.permits} for ${other.owner}: each host uses as ` +
      "many as it knows of, so the larger number counts; deploy one number everywhere";
    problems.push({ code: "permits", severity: "warning", message });
  }
  return problems;
}
