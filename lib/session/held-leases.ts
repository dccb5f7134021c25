import type { LossReason } from "../errors.js";
import type { LockInfo } from "../lock-info.js";
import type { Address } from "../protocol/addresses.js";
import type { Closeable } from "./closing.js";
import { addressKey } from "./sightings.js";

/** A row of a lease. A lock of several permits has several: the first, and `others`. */
interface HeldRow {
  readonly at: Address;
  readonly uuid: string;
  readonly others?: readonly HeldRow[] | undefined;
}

/** All rows of a lease: several for a lock of several permits. */
export function rowsOf<Held extends { readonly others?: readonly Held[] | undefined }>(row: Held): readonly Held[] {
  return row.others === undefined ? [row] : [row, ...row.others];
}

/** A lease that this process holds, on a lock's row or on a place in a queue. */
export interface HeldLease extends Closeable {
  readonly row: HeldRow;
  /** What is known to be on the row, for people. */
  readonly info: LockInfo;
  /** Whether a section relies on it, and it has not been lost. */
  readonly held: boolean;
  /** Since when the section that relies on it runs, on `atLeast`; undefined if none does. */
  readonly inUseSince: number | undefined;
  /** Its row is known not to be ours any more. */
  lose(reason: LossReason): void;
}

/**
 * The leases of each table of this process whose clock runs by itself, by the uuids of their rows. With a clock that is set by hand,
 * one process plays many hosts.
 */
const OF_PROCESS = new Map<string, HeldLease>();

/**
 * The leases that are held or being released, which are found by a row or by a uuid. Each waiting call asks for the lease in its
 * way again and again: that looks up, however many leases and calls there are.
 */
export class HeldLeases extends Set<HeldLease> {
  readonly #byUuid: Map<string, HeldLease>;
  readonly #byRow = new Map<string, readonly HeldLease[]>();

  /** @param isOfProcess whether the other tables of this process find them, too. */
  constructor(isOfProcess: boolean) {
    super();
    this.#byUuid = isOfProcess ? OF_PROCESS : new Map();
  }

  override add(lease: HeldLease): this {
    if (this.has(lease)) return this;
    this.#addUuids(lease);
    for (const { at } of rowsOf(lease.row)) this.#byRow.set(addressKey(at), [...this.on(at), lease]);
    return super.add(lease);
  }

  override delete(lease: HeldLease): boolean {
    if (!super.delete(lease)) return false;
    this.loseUuids(lease);
    for (const { at } of rowsOf(lease.row)) {
      const others = this.on(at).filter((other) => other !== lease);
      if (others.length > 0) this.#byRow.set(addressKey(at), others);
      else this.#byRow.delete(addressKey(at));
    }
    return true;
  }

  /** Its rows have other uuids now. One that is not found by a uuid any more stays so. @param before what it was. */
  renamed(lease: HeldLease, before: HeldRow): void {
    if (this.#byUuid.get(before.uuid) !== lease) return;
    this.loseUuids(lease, before);
    this.#addUuids(lease);
  }

  /** No section relies on it any more, so no call waits for one: it is not found by a uuid. It may have to be released. */
  loseUuids(lease: HeldLease, row: HeldRow = lease.row): void {
    for (const { uuid } of rowsOf(row)) if (this.#byUuid.get(uuid) === lease) this.#byUuid.delete(uuid);
  }

  /** Those on a row: one that is being released may be there beside the next one. */
  on(at: Address): readonly HeldLease[] {
    return this.#byRow.get(addressKey(at)) ?? [];
  }

  /** The uuids of those on a row, and of the other rows that they have. */
  uuidsOn(at: Address): readonly string[] {
    return this.on(at).flatMap(({ row }) => rowsOf(row).map(({ uuid }) => uuid));
  }

  /** The one with this uuid on a row. */
  with(uuid: string): HeldLease | undefined {
    return this.#byUuid.get(uuid);
  }

  #addUuids(lease: HeldLease): void {
    for (const { uuid } of rowsOf(lease.row)) this.#byUuid.set(uuid, lease);
  }
}
