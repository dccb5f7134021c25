import { publish } from "../diagnostics.js";
import { LockStoreError } from "../errors.js";
import type { RecordSuccess } from "../protocol/writes.js";
import type { Session } from "../session/session.js";
import { lossOf, type RowLease } from "../taking/row-lease.js";
import { record } from "../taking/row-writes.js";

/**
 * Records that the run of a tick has succeeded. Retries until the table has confirmed it, at most until `until`.
 * @throws {@link LockStoreError} if it was not recorded, or if that is not known. A channel tells so as well.
 */
export async function recordSuccess(
  session: Session,
  row: RowLease,
  run: Pick<RecordSuccess, "tick" | "attempt">,
  until: () => number,
): Promise<void> {
  const recorded = await record(session, row, run, until);
  if (recorded.kind === "ok") return;
  const isKnown = recorded.kind === "lost";
  const cause = isKnown ? lossOf(row, recorded.why) : recorded.cause;
  const { at, uuid } = row;
  publish("dynamutex:not-recorded", { name: at.name, uuid, ...run, isKnown, cause });
  const what = isKnown
    ? "its success was not recorded: the next host that asks runs it again"
    : "it is not known whether its success was recorded: if it was not, the next host that asks runs it again";
  const ran = `Lock ${JSON.stringify(at.name)}: attempt ${run.attempt} at tick ${run.tick} ran to its end`;
  throw new LockStoreError(`${ran}, and ${what}`, { cause });
}
