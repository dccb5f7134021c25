import type { LockLostError, LossReason } from "../errors.js";
import type { LockInfo } from "../lock-info.js";
import type { Row } from "../protocol/row.js";
import { type HeldLease, rowsOf, type Session } from "../session/session.js";
import { infoOfLease, type RowLease, reasonOf } from "../taking/row-lease.js";
import { Exit } from "./exit.js";
import { LOCK_EVENTS, Renewals } from "./renewals.js";
import { type LeaseEvents, type LeaseUser, Term } from "./term.js";

/**
 * A lease while this process has it, for one section after the other, or for several at once.
 *
 * 1. Its {@link Term} says who relies on it, until when, and how it ended.
 * 2. Its {@link Renewals} write the row while sections rely on it, and before the next one does.
 * 3. Its {@link Exit} makes the last write of the row: no other overlaps with it.
 */
export class Lease extends Term implements HeldLease {
  /** When this process took it, on `atLeast`. */
  readonly takenAt: number;
  readonly renewals: Renewals;
  #exit: Exit | undefined;
  #tellLoss: () => void = () => undefined;

  constructor(session: Session, row: RowLease, events: LeaseEvents = LOCK_EVENTS) {
    super(session, row, events);
    this.takenAt = session.clock.atLeast();
    this.renewals = new Renewals(session, this);
  }

  get exit(): Exit {
    this.#exit ??= new Exit(this.session, this);
    return this.#exit;
  }

  get info(): LockInfo {
    return infoOfLease(this.session, this.row);
  }

  /** From here on a closing table waits for the lease. @param tellLoss is called if the lease is lost. */
  keep(tellLoss: () => void = () => undefined): void {
    this.#tellLoss = tellLoss;
    this.session.leases.add(this);
  }

  /**
   * A section begins to rely on the lease: the first, the next one that it passes to, or one that joins others.
   * @returns when it began, on `atLeast`.
   */
  begin(user: LeaseUser): number {
    const joins = this.renewals.haveServed && this.users.size > 0;
    if (!this.renewals.haveServed)
      for (const { at } of rowsOf(this.row)) this.session.contention?.begins(at, this.takenAt);
    this.watch(user, this.renewals.spread());
    this.renewals.serve();
    return this.countHold({ joins });
  }

  /**
   * Renews the lease and watches its deadline from before its first section begins, even without `autoRenew`.
   * @param share after which share of the time until it is due the first renewal is sent.
   */
  watch(user: LeaseUser, share = 1): void {
    if (this.use(user)) this.renewals.start(share);
  }

  /** The table has refused a guard: the loss that the next renewal would have found is known now. */
  unguarded(row: Row | undefined): LockLostError {
    return this.lost ?? this.markLost(reasonOf(this.session, this.row, row));
  }

  /** The row is known not to be ours any more. The lease is lost between two sections as well: it must not be passed on. */
  lose(reason: LossReason): void {
    if (!this.isOver) this.markLost(reason);
  }

  /** The table has closed, so no other section begins on it. */
  endIfIdle(): void {
    if (this.isIdle) void this.exit.release();
  }

  /**
   * The table has closed, and its drain is over. The row of a section that runs is left alone until the section ends: nobody
   * gets in beside it. @returns the loss of that section, if there is one.
   */
  revoke(): LockLostError | undefined {
    // The section or the lease may be over already.
    if (!this.held) return undefined;
    // Only a lease with a section is revoked. A place is released, and so is the row of a writer that still waits for readers
    // to leave: its caller has had its answer.
    if (this.events.hasSection && this.renewals.haveServed) return this.markLost("closed");
    void this.exit.release();
    return undefined;
  }

  protected override onNewUuid(before: RowLease): void {
    this.session.leases.renamed(this, before);
  }

  protected override onLost(error: LockLostError, wasInUse: boolean): void {
    // A close does not wait for a section that has lost its lock before: nobody may be there to end that section.
    // Of a revoked section it does, and nobody waits behind that section.
    if (wasInUse && error.reason !== "closed") this.session.forgetLease(this);
    else this.session.leases.loseUuids(this);
    if (wasInUse) for (const user of this.users) user.abort(error);
    this.#tellLoss();
  }
}
