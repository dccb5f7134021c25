import type { HeldLock } from "../holding/handle.js";
import { Lease } from "../holding/lease.js";
import type { LockData } from "../lock-info.js";
import type { MutexSettings } from "../options/mutex.js";
import { type Address, permitOf, type QueueKeys } from "../protocol/addresses.js";
import type { Row } from "../protocol/row.js";
import { rowsOf, type Session } from "../session/session.js";
import type { Bid } from "../taking/bid.js";
import { type Claimed, claim, looksFree } from "../taking/claim.js";
import type { Once } from "../taking/known-time.js";
import type { RowLease, Target } from "../taking/row-lease.js";
import type { RowsInTheWay } from "../taking/row-take.js";
import { watch } from "../taking/watch.js";

/** What callers ask for: a lock of some kind, by its name. */
export interface Resource {
  readonly name: string;
  readonly kind: Kind;
  /** Its row. A lock of several rows is represented by one of them: the first permit, the writer of a shared mutex. */
  readonly at: Address;
  readonly settings: MutexSettings;
  /** How many permits it has: 1 for a mutex, Infinity for the shared side of a shared mutex. */
  readonly permits: number;
  /** How many of them one section holds. */
  readonly weight: number;
}

/** Tells the locks of a process apart: kinds of one name are independent. */
export const resourceKey = ({ kind, name }: Resource): string => `${kind.id}/${name}`;

/** What a single flight adds to the claims for its lock: another flight may end meanwhile, with a result that serves this call. */
export interface FlightClaims {
  /** The id of the result that the call has seen last: its claim is refused if the row shows another one. */
  readonly lastId: string | undefined;
  /** Waits for the look in flight. @returns the lock's row, as the last look has shown it; undefined if an earlier claim got it. */
  looked(): Promise<Row | undefined>;
}

/** What a section asks of its lock. */
export interface SectionRequest {
  readonly resource: Resource;
  readonly data: LockData | undefined;
  /** For how long the lock stays taken at least; 0 for no longer than the section runs. */
  readonly holdAtLeastMs: number;
  /** Only in a try: a call that waits runs its section once it has the lock, whatever ran before. */
  readonly once?: Once | undefined;
  /** Set if the section is a single flight: it uses no lease of another section, and never passes its own on. */
  readonly flight?: FlightClaims | undefined;
}

/** One claim for a section. */
export interface ResourceClaim {
  readonly request: SectionRequest;
  readonly bid: Bid;
  /** No copy of a write leaves later than this, on `atMost`. Default: the bounds of the bid. */
  readonly until?: (() => number) | undefined;
  /** What a look has just shown of the gate. */
  readonly seen?: readonly Row[] | undefined;
  /** How much of the room that was seen the callers ahead in the queue need. Undefined outside a queue. */
  readonly ahead?: number | undefined;
  /** Called if the row is taken, and other holders have to leave before the claim is granted. */
  readonly onTaken?: (() => void) | undefined;
  /** The lease of this process that the caller's section could join, if there is one. */
  readonly open: () => Tenure | undefined;
}

/** A lease of this process and what its callers know of it, from the take until no section can begin on it any more. */
export class Tenure {
  readonly lease: Lease;
  readonly resource: Resource;
  /** When the table was last asked whether others wait for this lease to go, on `atLeast`. */
  lookedAt: number;
  /** The section that has just ended on the lease, while the lease passes to the next one. */
  before: HeldLock | undefined;
  /** For which request it was taken. */
  readonly request: SectionRequest;
  #isOpen = true;

  constructor(session: Session, request: SectionRequest, row: RowLease) {
    this.lease = new Lease(session, row);
    this.request = request;
    this.resource = request.resource;
    this.lookedAt = this.lease.takenAt;
  }

  /** Whether further sections may begin on it. */
  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** No further section begins on it: a writer was seen, or the row no longer has our uuid. */
  close(): void {
    this.#isOpen = false;
  }

  /**
   * Whether a section may run on it that another call took it for. Both calls must keep the lease in the same way and have no data,
   * and neither may hold the lock for longer than its section runs.
   */
  admits({ resource, data, holdAtLeastMs, flight }: SectionRequest): boolean {
    const { lease } = this;
    const { settings, kind, permits } = resource;
    if (!this.#isOpen || this.request.flight !== undefined || flight !== undefined || !lease.stands) return false;
    // The success of this lease's tick is recorded under its uuid, so no other section may run under that uuid.
    if (lease.row.attempt !== undefined) return false;
    if (rowsOf(lease.row).length !== resource.weight) return false;
    if (data !== undefined || lease.renewals.mayHaveData || holdAtLeastMs > 0 || lease.exit.hold !== undefined)
      return false;
    if (rowsOf(lease.row).some(({ at }) => (permitOf(at.sort) ?? 0) >= permits)) return false;
    // A section that joins others would lose the lock as soon as the first of them has held it for `maxHoldMs`.
    if (kind.sectionsShareLease && settings.maxHoldMs !== Number.POSITIVE_INFINITY) return false;
    return KEPT_BY.every((option) => settings[option] === lease.settings[option]);
  }
}

/** The options by which a lease is kept: two sections that share a lease must agree on them. */
const KEPT_BY = [
  ...(["ttlMs", "renewEveryMs", "safetyMarginMs", "autoRenew", "maxHoldMs"] as const),
  ...(["releaseWithinMs", "handOverMs", "fencing"] as const),
];

/**
 * How the locks of one kind are taken: all of them are leases on rows. The methods here serve a lock of one row, and a kind
 * overrides those that differ.
 */
export abstract class Kind {
  abstract readonly id: string;
  abstract readonly queue: QueueRules;
  /**
   * Whether one row decides who has the lock. If so, a lease that lapsed and was renewed excluded everybody all along, and a
   * hand-off may pass its row to another process. If not, others may have acted on what they saw of a lapsed row.
   */
  readonly rowDecides: boolean = true;
  /** Whether several sections of a process run on one lease at the same time. Otherwise it passes from one to the next. */
  readonly sectionsShareLease: boolean = false;
  readonly session: Session;

  constructor(session: Session) {
    this.session = session;
  }

  /** Takes a lease, or joins one. @throws the store's error; what ended the call. */
  claim(claimed: ResourceClaim): Promise<Claimed<Tenure>> {
    return takeRow(this.session, claimed);
  }

  /**
   * Waits until another claim may succeed.
   * @returns what it has seen of the gate, if that may save the next claim a look. @throws what ended the call.
   */
  async watch(_resource: Resource, [first]: RowsInTheWay, bid: Bid): Promise<readonly Row[] | undefined> {
    await watch(this.session, first, bid);
    bid.view.pauseAnew();
    return undefined;
  }

  /** No section of this process uses the lease any more. @param isFree whether its row was released, and may still be free. */
  ended(_own: Tenure, _isFree: boolean): void {
    // One row has nothing to keep count of.
  }
}

/** Takes one row of a lock; by default the one that stands for the lock. */
export async function takeRow(
  session: Session,
  claimed: ResourceClaim,
  target: Target = rowTarget(claimed.request.resource),
): Promise<Claimed<Tenure>> {
  const { request, bid, until } = claimed;
  const { data, once, flight } = request;
  if (flight !== undefined) {
    // A look has bounds of its own, which may be longer than those of a try.
    const row = await bid.answered(flight.looked());
    // A look at the gate is newer than that of the flight. And where this process has given up the claim that the flight's look shows,
    // that tells nothing of the row as it is now.
    const mayRefuse = row !== undefined && claimed.seen === undefined && !session.sightings.isDisowned(row);
    if (mayRefuse && !looksFree(session, target, row)) {
      bid.saw(row);
      return { kind: "held", inTheWay: [{ target, row }] };
    }
  }
  const after = flight && { id: flight.lastId };
  const result = await claim(session, target, bid, { data, once, after, until });
  if (result.kind !== "granted") return result;
  return { kind: "granted", granted: new Tenure(session, request, result.granted) };
}

/** How the fair queue of a kind measures the room for callers, and the places that need it. */
export interface QueueRules {
  readonly keys: QueueKeys;
  /** The side that a place names on its row, for others to weigh it, and for people to see. */
  readonly side?: "exclusive" | "shared";
  /** How many items a look at the gate and the first places reads at once: the gate is the lock's own rows, right before them. */
  lookLimit(resource: Resource): number;
  /** The rows of the gate that count for this caller, of those that a look has shown. */
  gateRows(resource: Resource, rows: readonly Row[]): readonly Row[];
  /** How many callers may enter, by the rows of the gate. */
  room(resource: Resource, rows: readonly Row[]): number;
  /** How much of that room the callers with this place will need, ahead of a caller of this kind. */
  weight(place: Row): number;
  /** How many of the first places may enter together while nobody has the lock: at least one. */
  together(resource: Resource, places: readonly Row[]): number;
}

/** The row that stands for a lock. */
export const rowTarget = ({ at, settings }: Resource): Target => ({ at, settings });

/** The rows that a claim made now would not take. */
export const heldAmong = (session: Session, { settings }: Resource, rows: readonly Row[]): readonly Row[] =>
  rows.filter((row) => !looksFree(session, { at: row, settings }, row));

/** The row that was taken last, of those that are held. */
export const newestHeld = (session: Session, resource: Resource, rows: readonly Row[]): Row | undefined =>
  newest(heldAmong(session, resource, rows));

/** The row that was taken last: all other holders have had theirs for longer. */
export function newest(rows: readonly Row[]): Row | undefined {
  return rows.toSorted((one, other) => other.acquired - one.acquired)[0];
}
