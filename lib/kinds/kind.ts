import type { HeldLock } from "../holding/handle.js";
import { Lease } from "../holding/lease.js";
import type { LockData } from "../lock-info.js";
import type { MutexSettings } from "../options/mutex.js";
import type { Address, QueueKeys, SortRange } from "../protocol/addresses.js";
import type { Row } from "../protocol/row.js";
import type { Session } from "../session/session.js";
import type { Acquisition, Target } from "../taking/acquisition.js";
import type { Claimed, RowsInTheWay } from "../taking/claim.js";
import type { Once } from "../taking/known-time.js";
import type { Wait } from "../taking/wait.js";
import type { KeptOut } from "../taking/watch.js";

/** What callers ask for: a lock of some kind, by its name. */
export interface Resource {
  readonly name: string;
  readonly kind: Kind;
  /** Its row, where it is one; else one of its rows, which stands for it: the first permit, the writer of a shared mutex. */
  readonly at: Address;
  readonly settings: MutexSettings;
  /** How many leases of one process may serve its callers at once. */
  readonly permits: number;
}

/** Tells the locks of a process apart: kinds of one name are independent. */
export const keyOf = ({ kind, name }: Resource): string => `${kind.id}/${name}`;

/** One claim for a resource. */
export interface ResourceClaim {
  readonly resource: Resource;
  readonly wait: Wait;
  readonly data: LockData | undefined;
  readonly once?: Once | undefined;
  /** No copy of a write leaves later than this, on `atMost`. Default: the bounds of the wait. */
  readonly until?: (() => number) | undefined;
  /** What a look has just shown of the gate. */
  readonly seen?: readonly Row[] | undefined;
  /** How many others are ahead, and have as much of the room that was seen. Default 0. */
  readonly ahead?: number | undefined;
  /** Whether the call goes on waiting where the lock is held. */
  readonly waits: boolean;
  /** The lease of this process that the caller's section could join, if there is one. */
  readonly open: () => OwnLease | undefined;
}

/** A lease of this process and what its callers know of it, from the take until no section can begin on it any more. */
export class OwnLease {
  readonly lease: Lease;
  readonly resource: Resource;
  /** When the table was last asked whether others wait for it to go, on `atLeast`. */
  lookedAt: number;
  /** The section that has just ended on it, while it goes on to the next. */
  before: HeldLock | undefined;
  /** Whether no further section joins it: a writer was seen. */
  isClosed = false;
  /** Whether this process has no use for it any more. */
  isReturned = false;

  constructor(session: Session, resource: Resource, acquisition: Acquisition) {
    this.lease = new Lease(session, acquisition);
    this.resource = resource;
    this.lookedAt = this.lease.takenAt;
  }
}

/** How the locks of one kind are taken. All of them are leases on rows. */
export interface Kind {
  readonly id: string;
  readonly queue: QueueRules;
  /**
   * Whether one row decides who has the lock. If so, a lease that lapsed and was renewed excluded everybody all along, and
   * another process may go on with its row. If not, others may have acted on what they saw of a lapsed row.
   */
  readonly rowDecides: boolean;
  /** Whether several sections of a process run on one lease at the same time. Else it goes from one to the next. */
  readonly isJoined: boolean;
  /** Takes a lease, or joins one. @throws the store's error; what ended the wait. */
  claim(claim: ResourceClaim): Promise<Claimed<OwnLease>>;
  /**
   * Waits until another claim may succeed.
   * @returns what it has seen of the gate, if that may save the next claim a look. @throws what ended the wait.
   */
  watch(resource: Resource, inTheWay: RowsInTheWay, wait: Wait, keptOut: KeptOut): Promise<readonly Row[] | undefined>;
  /** This process has no use for the lease any more. @param isFree whether its row was released, and may still be free. */
  left?(own: OwnLease, isFree: boolean): void;
}

/** What the fair queue of a kind weighs. */
export interface QueueRules {
  readonly keys: QueueKeys;
  /** The rows that say whether somebody may enter: right before the places of the queue. */
  readonly gate: SortRange;
  /** What a place says of itself, for others to weigh it, and for people to see. */
  readonly side?: "exclusive" | "shared";
  /** How many items a look at the gate and the first places reads at once. */
  lookLimit(resource: Resource): number;
  /** The rows of the gate that count for this caller, of those that a look has shown. */
  gateRows(resource: Resource, rows: readonly Row[]): readonly Row[];
  /** How many callers may enter, by the rows of the gate. */
  room(resource: Resource, rows: readonly Row[]): number;
  /** How much of that room whoever has this place is going to need, ahead of a caller of this kind. */
  weight(place: Row): number;
  /** How many of the first places have room together, where nobody has the lock: one at least. */
  together(resource: Resource, places: readonly Row[]): number;
}

/** The row that stands for a lock. */
export const targetOf = ({ at, settings }: Resource): Target => ({ at, settings });
