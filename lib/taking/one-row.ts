import type { QueueKeys } from "../protocol/addresses.js";
import { LOCK_SORT, MUTEX_QUEUE, SHARED_MUTEX_QUEUE, WRITER_SORT } from "../protocol/addresses.js";
import type { Row } from "../protocol/row.js";
import type { Session } from "../session/session.js";
import type { Target } from "./acquisition.js";
import { claim, looksFree } from "./claim.js";
import type { LockKind, Resource } from "./kind.js";
import { watch } from "./watch.js";

/** The first place and the next, behind the row itself: whether anybody waits behind the first. */
const LOOK_LIMIT = 3;

/** The first places of a shared mutex: those of the shared side go in together, and of 16 a look costs no more than of one. */
export const SHARED_LOOK_LIMIT = 16;

/** The row of a lock that is one, and of the writer of a shared mutex. */
export const targetOf = ({ at, settings }: Resource): Target => ({ at, settings });

/** A lock that is one row. */
function oneRow(parts: {
  readonly id: LockKind["id"];
  readonly sort: string;
  readonly queue: QueueKeys;
  readonly side?: "exclusive";
}): LockKind {
  const { id, sort, queue, side } = parts;
  return {
    id,
    queue,
    gate: { first: sort, last: sort },
    isParallel: false,
    ...(side === undefined ? {} : { side }),
    lookLimit: () => (side === undefined ? LOOK_LIMIT : SHARED_LOOK_LIMIT),
    room: (session, resource, rows) => (isFree(session, targetOf(resource), rows) ? 1 : 0),
    weight: () => 1,
    together: (_resource, places) => (side === undefined ? 1 : leadingReaders(places)),
    claim: (session, resource, wait, { data, once, until }) =>
      claim(session, targetOf(resource), wait, { data, once, until }),
    watch: async (session, _resource, [first], wait, keptOut) => {
      await watch(session, first, wait, { keptOut });
      return undefined;
    },
  };
}

/** How many of the first places are of the shared side, which goes in together; 1 where the first is not. */
export function leadingReaders(places: readonly Row[]): number {
  const first = places.findIndex(({ data }) => data?.side !== "shared");
  return Math.max(1, first === -1 ? places.length : first);
}

/** Whether a claim made now would take the row of this lock, by what a look has shown. */
export function isFree(session: Session, target: Target, rows: readonly Row[]): boolean {
  const row = rows.find(({ sort }) => sort === target.at.sort);
  return row === undefined || looksFree(session, target, row);
}

export const MUTEX: LockKind = oneRow({ id: "mutex", sort: LOCK_SORT, queue: MUTEX_QUEUE });

/** The exclusive side of a shared mutex, as far as its own row goes: the readers have to leave as well. */
export const EXCLUSIVE: LockKind = oneRow({
  id: "exclusive",
  sort: WRITER_SORT,
  queue: SHARED_MUTEX_QUEUE,
  side: "exclusive",
});
