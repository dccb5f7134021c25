import type { LockInfo } from "../lock-info.js";
import { permitAt } from "../protocol/addresses.js";
import type { HeldLease, Session } from "../session/session.js";

/** A lease that a section runs on. */
export type LeaseInUse = HeldLease & { readonly inUseSince: number };

function isInUse(lease: HeldLease): lease is LeaseInUse {
  return lease.inUseSince !== undefined;
}

/**
 * The lease that this process has under a uuid, if a section runs on it: on this table, or on the same table by way of another
 * `LockTable` that names the same owner. Another owner would be another host, such as one of a table in memory.
 */
export function leaseInUse({ leases, owner }: Session, uuid: string | undefined): LeaseInUse | undefined {
  const lease = uuid === undefined ? undefined : leases.with(uuid);
  return lease?.info.owner === owner && isInUse(lease) ? lease : undefined;
}

/** Who is in the way of a call, as its error says it, if these are sections of its own process. */
export function lastSeenHere(session: Session, holder: LockInfo): string | undefined {
  if (leaseInUse(session, holder.uuid) === undefined) return undefined;
  const { held, each, remedy } = ownSections(session, holder);
  const until = holder.expires.toISOString();
  return `last seen ${held}, until ${until}. If ${each} awaits this call, waiting longer does not help: ${remedy}`;
}

/** What is said of a lock to a call that waits behind sections of its own process. */
interface OwnSections {
  /** By whom it is held. */
  readonly held: string;
  /** Each of them. */
  readonly each: string;
  /** What to do if one of them awaits the call. */
  readonly remedy: string;
}

/** The sections of this process that have this lock. All of those count that have a permit of a semaphore, and not the newest alone. */
export function ownSections(session: Session, { name, kind, owner }: LockInfo): OwnSections {
  if (kind !== "semaphore") {
    const what = kind === "mutex" ? "a mutex" : "a shared mutex";
    return {
      held: `held by a section of this process, ${owner}`,
      each: "that section",
      remedy: `${what} is not re-entrant, so use the lock that the section has`,
    };
  }
  const permits = session.semaphores.get(name) ?? 0;
  const rows = Array.from({ length: permits }, (_, permit) =>
    session.leases.on(permitAt(name, permit)).filter(isInUse),
  );
  const used = rows.filter((leases) => leases.length > 0).length;
  const sections = new Set(rows.flat()).size;
  const who = sections === 1 ? "a section" : `${sections} sections`;
  const which =
    used < permits ? `${used} of ${permits} permits` : permits === 1 ? "its only permit" : `all ${permits} permits`;
  return {
    held: `held by ${who} of this process with ${which}, ${owner}`,
    each: sections === 1 ? "that section" : "one of these sections",
    remedy: "take all permits that a section needs by one call, with { permits: … }, before it begins",
  };
}
