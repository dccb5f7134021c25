import { READERS, SHARED_MUTEX_QUEUE } from "../protocol/addresses.js";
import type { Row } from "../protocol/row.js";
import { listenWithoutBound } from "../session/abort-listening.js";
import { isTransient } from "../session/retry.js";
import type { Session } from "../session/session.js";
import type { Bid } from "../taking/bid.js";
import type { Claimed } from "../taking/claim.js";
import type { InTheWay } from "../taking/row-take.js";
import { isDead, knownNow, pagesOf, removalOf } from "../taking/rows.js";
import { type QueueRules, type Resource, rowTarget, type Tenure } from "./kind.js";

/** How many readers one look of a writer reads: a single reader that is alive is enough to wait for. */
const READERS_LIMIT = 8;

/** How many places a look reads: places of the shared side enter together, and a look at 16 costs no more than at one. */
const LOOK_LIMIT = 16;

/** The queue rules that both sides have in common: places of either side wait for the writer's row. */
export const WRITER_GATE: Pick<QueueRules, "keys" | "lookLimit" | "gateRows" | "together"> = {
  keys: SHARED_MUTEX_QUEUE,
  lookLimit: () => LOOK_LIMIT,
  gateRows: (_resource, rows) => rows,
  together: (_resource, places) => {
    const first = places.findIndex(({ data }) => data?.side !== "shared");
    return Math.max(1, first === -1 ? places.length : first);
  },
};

/** The row of a writer that may have the lock, or wait for the readers to leave, if there is one. Eventually consistent. */
export async function lookForWriter(session: Session, resource: Resource, bid: Bid): Promise<InTheWay | undefined> {
  return (await readWriter(session, resource, bid, { isConsistent: false })).writer;
}

/**
 * Looks for a writer, consistently, after the caller has put its own flag as a reader. The row of a dead writer is removed.
 * @returns the writer that keeps the reader out, if there is one.
 */
export async function untilNoWriter(session: Session, resource: Resource, bid: Bid): Promise<InTheWay | undefined> {
  for (;;) {
    const { writer, row } = await readWriter(session, resource, bid, { isConsistent: true });
    if (writer !== undefined || row?.uuid === undefined) return writer;
    bid.withdrawn.throwIfAborted();
    // If the removal was applied, no writer was there at that moment, as if a read had shown none.
    if (await remove(session, row, resource.settings.ttlMs, bid)) return undefined;
    bid.withdrawn.throwIfAborted();
    await bid.again();
  }
}

/** Reads the writer's row. @returns the row, and also `writer` unless that row is dead. */
async function readWriter(
  session: Session,
  resource: Resource,
  bid: Bid,
  { isConsistent: consistent }: { readonly isConsistent: boolean },
): Promise<{ readonly row: Row | undefined; readonly writer: InTheWay | undefined }> {
  const target = rowTarget(resource);
  const { known, row } = await bid.ask(async (signal) => {
    const before = knownNow(session, resource.settings.takeover);
    return { known: before, row: await session.store.read(target.at, { consistent }, signal) };
  });
  session.sightings.note(target.at, row);
  if (row === undefined || isDead(session, row, known)) return { row, writer: undefined };
  bid.saw(row);
  return { row, writer: { target, row } };
}

/**
 * Looks for readers, consistently, and removes the rows of dead ones. A reader is judged by what was known before the look
 * left, and removed on the condition that its row is still exactly as it was seen.
 * @returns a reader that is alive; `found` without one if the caller has to look again.
 */
export async function lookForReaders(
  session: Session,
  { name, settings }: Resource,
  bid: Bid,
): Promise<{ readonly found: boolean; readonly alive?: Row }> {
  const { takeover } = settings;
  const range = { name, ...READERS, limit: READERS_LIMIT, consistent: true, takeover };
  let found = false;
  for await (const { page } of pagesOf(session, bid.ask, range)) {
    found ||= page.rows.length > 0;
    const alive = page.rows.find((row) => !isDead(session, row, page));
    if (alive !== undefined) return { found, alive };
    listenWithoutBound(bid.withdrawn);
    // Nobody that this page shows is in the way any more.
    if (page.rows.length > 0) bid.tries();
    await Promise.all(page.rows.map((row) => remove(session, row, settings.ttlMs, bid)));
  }
  return { found };
}

/** Grants a row that was just taken, unless a look shows a row of the other side in its way: then the new row is given back. */
export async function grantedUnless(
  session: Session,
  own: Tenure,
  look: (own: Tenure) => Promise<InTheWay | undefined>,
): Promise<Claimed<Tenure>> {
  let isGranted = false;
  try {
    const inTheWay = await look(own);
    isGranted = inTheWay === undefined;
    return inTheWay === undefined ? { kind: "granted", granted: own } : { kind: "held", inTheWay: [inTheWay] };
  } finally {
    if (!isGranted) session.detach(own.lease.exit.giveBack());
  }
}

/** @returns whether the row is certainly gone. @throws the store's error, if another try is of no use. */
async function remove(session: Session, row: Row, ttlMs: number, bid: Bid): Promise<boolean> {
  const { bounds, request } = removalOf(session, row, ttlMs);
  const until = (): number => Math.min(bounds.until(), bid.until());
  try {
    return (await bid.persist({ ...bounds, kind: "take", until }, request)).kind === "applied";
  } catch (error) {
    // The next look finds what is left, if there is time for one.
    const mayLookAgain = isTransient(error) && session.clock.atMost() < bid.until();
    if (mayLookAgain || bid.withdrawn.aborted) return false;
    throw error;
  }
}
