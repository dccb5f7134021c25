import { publish } from "../diagnostics.js";
import { permitAt, permitOf } from "../protocol/addresses.js";
import type { Row } from "../protocol/row.js";
import type { Session } from "../session/session.js";
import type { Target } from "../taking/row-lease.js";
import type { InTheWay } from "../taking/row-take.js";
import { heldAmong, type Resource } from "./kind.js";

/** The numbers of a semaphore's permits, in order. */
export const numbersTo = (end: number): number[] => Array.from({ length: end }, (_, index) => index);

/** What to take for one permit. */
export function permitTarget({ name, settings, permits }: Resource, permit: number): Target {
  return { at: permitAt(name, permit), settings, permits };
}

/** The rows of the permits that this caller knows of. Reports once if a holder knows of another number of permits. */
export function ownRows(session: Session, resource: Resource, rows: readonly Row[]): readonly Row[] {
  const { name, permits } = resource;
  // Mostly there are none, so nothing is judged.
  const others = rows.filter((row) => row.permits !== undefined && row.permits !== permits);
  const [other] = heldAmong(session, resource, others);
  if (other?.permits !== undefined && session.isNews(`${permits}/${other.permits}/${name}`))
    publish("dynamutex:permits-differ", { name, permits, others: other.permits, owner: other.owner });
  return rows.filter(({ sort }) => (permitOf(sort) ?? permits) < permits);
}

/** The permits that a claim made now would take, in order. */
export function freePermits(session: Session, resource: Resource, rows: readonly Row[]): number[] {
  const { permits } = resource;
  const taken = new Set(heldAmong(session, resource, rows).map(({ sort }) => permitOf(sort)));
  return numbersTo(permits).filter((permit) => !taken.has(permit));
}

/** The held permits. The first is the one that is named: the newest; of a rate, the one that is free first. */
export function heldOf(session: Session, resource: Resource, rows: readonly Row[]): readonly InTheWay[] {
  const isRate = resource.settings.perMs > 0;
  const inOrder = heldAmong(session, resource, rows).toSorted(isRate ? freeFirst : newestFirst);
  return inOrder.map((row) => inTheWayAt(resource, row));
}

const newestFirst = (one: Row, other: Row): number => other.acquired - one.acquired;

/** Nobody knows when a section ends: those permits come last, and of them the one that was taken first. */
function freeFirst(one: Row, other: Row): number {
  const [isKept, isOtherKept] = [one.uuid === undefined, other.uuid === undefined];
  if (isKept !== isOtherKept) return isKept ? -1 : 1;
  return isKept ? one.expires - other.expires : one.acquired - other.acquired;
}

function inTheWayAt(resource: Resource, row: Row): InTheWay {
  return { target: permitTarget(resource, permitOf(row.sort) ?? 0), row };
}
