import type { LockData } from "../lock-info.js";
import type { MutexSettings } from "../options/mutex.js";
import type { Address, QueueKeys, SortRange } from "../protocol/addresses.js";
import type { Row } from "../protocol/row.js";
import type { Session } from "../session/session.js";
import type { Acquisition } from "./acquisition.js";
import type { Claimed, InTheWay } from "./claim.js";
import type { Once } from "./known-time.js";
import type { Wait } from "./wait.js";
import type { KeptOut } from "./watch.js";

/** What callers ask for: a lock of some kind, by its name. */
export interface Resource {
  readonly name: string;
  readonly kind: LockKind;
  /** Its row, where it is one; else one of its rows, which stands for it: the first permit, the writer of a shared mutex. */
  readonly at: Address;
  readonly settings: MutexSettings;
  /** How many may have it at once, as far as the kind asks. */
  readonly permits: number;
}

/** One claim for a resource. */
export interface ResourceClaim {
  readonly data: LockData | undefined;
  readonly once?: Once | undefined;
  /** No copy of a write leaves later than this, on `atMost`. Default: the bounds of the wait. */
  readonly until?: (() => number) | undefined;
  /** What a look has just shown of the gate. */
  readonly seen?: readonly Row[] | undefined;
  /** How many others are ahead, and have as much of the room that was seen. Default 0. */
  readonly ahead?: number | undefined;
  /** The sort keys of rows that other callers of this process have, or ask for. */
  readonly busy: Set<string>;
  /** The sort key of the row that this process has released last: it may still be free. */
  readonly guess?: string | undefined;
}

/** How the locks of one kind are taken. All of them are leases on rows. */
export interface LockKind {
  readonly id: "mutex" | "semaphore" | "exclusive" | "shared";
  readonly queue: QueueKeys;
  /** The rows that say whether somebody may enter: right before the places of the queue. */
  readonly gate: SortRange;
  /** Whether its callers ask in parallel, as long as nobody has to wait. Else one of a process does at a time. */
  readonly isParallel: boolean;
  /** How many leases of one process may serve its callers at once. Default 1. */
  capacity?(resource: Resource): number;
  /** How many items a look at the gate and the first places reads at once. */
  lookLimit(resource: Resource): number;
  /** How many callers may enter, by the rows of the gate. */
  room(session: Session, resource: Resource, rows: readonly Row[]): number;
  /** How much of that room whoever has this place is going to need, ahead of a caller of this kind. */
  weight(place: Row): number;
  /** How many of the first places have room together, where nobody has the lock: one at least. */
  together(resource: Resource, places: readonly Row[]): number;
  /** What a place in the queue says of itself, for others to weigh it, and for people to see. */
  readonly side?: "exclusive" | "shared";
  /** Whether a row of the gate is of interest to this caller. Default: all of them are. */
  isGate?(resource: Resource, row: Row): boolean;
  /** Is told of all rows of the gate that a look at the queue has shown. */
  sees?(session: Session, resource: Resource, rows: readonly Row[]): void;
  claim(session: Session, resource: Resource, wait: Wait, claim: ResourceClaim): Promise<Claimed<Acquisition>>;
  /**
   * Waits until another claim may succeed.
   * @returns what it has seen of the gate, if that may save the next claim a look. @throws what ended the wait.
   */
  watch(
    session: Session,
    resource: Resource,
    inTheWay: readonly [InTheWay, ...InTheWay[]],
    wait: Wait,
    keptOut: KeptOut,
  ): Promise<readonly Row[] | undefined>;
}
