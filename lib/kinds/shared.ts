import { READERS, readerAt, SHARED_MUTEX_QUEUE, WRITER_SORT } from "../protocol/addresses.js";
import type { Row } from "../protocol/row.js";
import { isTransient } from "../session/retry.js";
import type { Session } from "../session/session.js";
import { giveBack } from "./abandoned-claims.js";
import type { Acquisition, Target } from "./acquisition.js";
import { type Claimed, claim, type InTheWay } from "./claim.js";
import type { LockKind, Resource, ResourceClaim } from "./kind.js";
import { isFree, leadingReaders, SHARED_LOOK_LIMIT, targetOf } from "./one-row.js";
import { isDead, knownNow, pagesOf, removeAsSeen } from "./rows.js";
import type { Wait } from "./wait.js";
import { untilFree, watch } from "./watch.js";

/** How many readers a writer looks at: one that is there is enough to wait for. */
const READERS_LIMIT = 8;

/**
 * The shared side of a shared mutex. Both sides put their flag first and look at the other's then, so that one of two always
 * sees the other:
 *
 * 1. It takes a row of its own, `reader#<uuid>`, by the ordinary claim.
 * 2. It reads `writer`, consistent. Where a writer has it, judged by what was known before the read left, it gives its row
 *    back and waits.
 * 3. The row of a dead writer it removes, on the condition that it is still exactly as it was seen: from there on no guard of
 *    that writer passes. Where that is refused, it goes on with 2. Else it has the lock.
 *
 * Who has seen a writer before looks first whether it is still there: flags that come and go would keep it out.
 */
export const SHARED: LockKind = {
  id: "shared",
  queue: SHARED_MUTEX_QUEUE,
  gate: { first: WRITER_SORT, last: WRITER_SORT },
  isParallel: false,
  side: "shared",
  capacity: () => Number.POSITIVE_INFINITY,
  lookLimit: () => SHARED_LOOK_LIMIT,
  room: (session, resource, rows) => (isFree(session, targetOf(resource), rows) ? Number.POSITIVE_INFINITY : 0),
  weight: ({ data }) => (data?.side === "shared" ? 0 : Number.POSITIVE_INFINITY),
  together: (_resource, places) => leadingReaders(places),
  claim: claimReader,
  watch: async (session, _resource, [first], wait, keptOut) => {
    await watch(session, first, wait, { keptOut });
    return undefined;
  },
};

async function claimReader(
  session: Session,
  resource: Resource,
  wait: Wait,
  { data, until }: ResourceClaim,
): Promise<Claimed<Acquisition>> {
  const { name, settings } = resource;
  if (!session.sightings.mayBeFree(resource.at, settings.takeover)) {
    const writer = await lookForWriter(session, resource, wait, { isConsistent: false });
    if (writer !== undefined) return { kind: "held", inTheWay: [writer] };
    wait.throwIfEnough();
  }
  const target: Target = { at: readerAt(name, session.uuid()), settings };
  const claimed = await claim(session, target, wait, { data, until });
  if (claimed.kind !== "granted") return claimed;
  let isOurs = false;
  try {
    const writer = await untilNoWriter(session, resource, wait);
    isOurs = writer === undefined;
    return writer === undefined ? claimed : { kind: "held", inTheWay: [writer] };
  } finally {
    if (!isOurs) session.detach(giveBack(session, claimed.granted));
  }
}

/** Whether a reader, whose flag is there, has seen that no writer is: the row of one that is dead is removed. */
async function untilNoWriter(session: Session, resource: Resource, wait: Wait): Promise<InTheWay | undefined> {
  for (;;) {
    const { writer, row } = await readWriter(session, resource, wait, { isConsistent: true });
    if (writer !== undefined || row?.uuid === undefined) return writer;
    wait.throwIfEnough();
    // Where it was applied, no writer was there at that moment, as if a read had shown none.
    if (await remove(session, row, resource.settings.ttlMs, wait)) return undefined;
    wait.throwIfEnough();
    await wait.pacing.again();
  }
}

/** The row of a writer, if there is one who may have the lock, or be waiting for the readers to leave. */
export async function lookForWriter(
  session: Session,
  resource: Resource,
  wait: Wait,
  how: { readonly isConsistent: boolean },
): Promise<InTheWay | undefined> {
  return (await readWriter(session, resource, wait, how)).writer;
}

/** The row under the key of the writer, and that of a writer who may have the lock. */
async function readWriter(
  session: Session,
  resource: Resource,
  wait: Wait,
  { isConsistent: consistent }: { readonly isConsistent: boolean },
): Promise<{ readonly row: Row | undefined; readonly writer: InTheWay | undefined }> {
  const target = targetOf(resource);
  const { known, row } = await wait.ask(async (signal) => {
    const before = knownNow(session, resource.settings.takeover);
    return { known: before, row: await session.store.read(target.at, { consistent }, signal) };
  });
  session.sightings.note(target.at, row);
  if (row === undefined || isDead(session, row, known)) return { row, writer: undefined };
  wait.saw(row);
  return { row, writer: { target, row } };
}

/** What a writer that has put its flag finds of the readers. */
export type Readers =
  /** None is left. */
  | { readonly kind: "gone" }
  /** Dead ones were there, and are removed. Only another look tells whether nobody is left. */
  | { readonly kind: "removed" }
  | { readonly kind: "there"; readonly row: Row };

/**
 * Looks for readers, consistent, and removes those that are dead: judged by what was known before the look left, and on the
 * condition that the row is still exactly as it was seen.
 */
export async function lookForReaders(session: Session, { name, settings }: Resource, wait: Wait): Promise<Readers> {
  const { takeover } = settings;
  const range = { name, ...READERS, limit: READERS_LIMIT, consistent: true, takeover };
  let found = false;
  for await (const { page } of pagesOf(session, wait.ask, range)) {
    found ||= page.rows.length > 0;
    const alive = page.rows.find((row) => !isDead(session, row, page));
    if (alive !== undefined) return { kind: "there", row: alive };
    await Promise.all(page.rows.map((row) => remove(session, row, settings.ttlMs, wait)));
  }
  return { kind: found ? "removed" : "gone" };
}

/** Milliseconds until this reader is dead, if nothing is done to its row. */
export function untilDead(session: Session, { settings }: Resource, row: Row): number {
  return untilFree(session, { at: row, settings }, row);
}

/** @returns whether the row is gone, for certain. @throws the store's error, if it does not pass. */
async function remove(session: Session, row: Row, ttlMs: number, { enough }: Wait): Promise<boolean> {
  try {
    return (await removeAsSeen(session, row, { ttlMs, enough })).kind === "applied";
  } catch (error) {
    // The next look finds what is left.
    if (isTransient(error) || enough.aborted) return false;
    throw error;
  }
}
