import type { LockData } from "../lock-info.js";
import { memberUuid } from "../protocol/addresses.js";
import type { Session } from "../session/session.js";
import type { WriteAllOutcome } from "../store.js";
import { removeWhenTheyArrive } from "./abandoned-claims.js";
import type { Taking } from "./claim.js";
import type { RowLease, Target } from "./row-lease.js";
import { type InTheWay, RowTake } from "./row-take.js";

/** The takes of several rows, which go together: one transaction. Either all of the rows are taken, or none. */
export class SetTake implements Taking<WriteAllOutcome, readonly RowLease[]> {
  readonly #session: Session;
  readonly #takes: readonly RowTake[];

  /** @param acquisition what all of the rows belong to. Default: each is an acquisition of its own. */
  constructor(session: Session, targets: readonly Target[], data: LockData | undefined, acquisition?: string) {
    this.#session = session;
    const uuidAt = (index: number) => (acquisition === undefined ? undefined : memberUuid(acquisition, index));
    this.#takes = targets.map((target, index) => new RowTake(session, target, { data }, uuidAt(index)));
  }

  get uuids(): readonly string[] {
    return this.#takes.flatMap(({ uuids }) => uuids);
  }

  get sentAt(): number {
    return Math.min(...this.#takes.map(({ sentAt }) => sentAt));
  }

  send(signal: AbortSignal): Promise<WriteAllOutcome> {
    const writes = this.#takes.map(({ write }) => write);
    return this.#session.store.writeAll(writes, signal);
  }

  granted(outcome: WriteAllOutcome): readonly RowLease[] | undefined {
    // A transaction does not tell what it replaced.
    if (outcome.kind === "applied") return this.#takes.map((take) => take.taken(undefined, {}));
    const { rows } = outcome;
    if (!this.#takes.every((take, index) => take.isOwn(rows[index]))) return undefined;
    return this.#takes.map((take, index) => take.taken(rows[index], { fence: rows[index]?.fence }));
  }

  refused(outcome: WriteAllOutcome): readonly InTheWay[] {
    const rows = outcome.kind === "refused" ? outcome.rows : [];
    return this.#takes.flatMap((take, index) => take.refusedBy(rows[index]));
  }

  abandon(): void {
    if (this.sentAt === Number.POSITIVE_INFINITY) return;
    for (const take of this.#takes) take.disown();
    const leases = this.#takes.map((take) => take.lease());
    removeWhenTheyArrive(this.#session, leases);
  }
}
