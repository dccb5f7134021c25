import { publish } from "../diagnostics.js";
import { PERMITS, permitAt, permitOf, SEMAPHORE_QUEUE } from "../protocol/addresses.js";
import type { Row } from "../protocol/row.js";
import type { Session } from "../session/session.js";
import type { Acquisition, Target } from "./acquisition.js";
import { type Claimed, claim, type InTheWay, looksFree } from "./claim.js";
import type { LockKind, Resource, ResourceClaim } from "./kind.js";
import { pagesOf } from "./rows.js";
import type { Wait } from "./wait.js";
import { isMarked, type KeptOut, mark, untilFree } from "./watch.js";

/** Of the permits that a look shows to be free, so many are tried before it counts as outdated. */
const MOST_TRIES = 3;

/** After a guess that others have marked, the first look comes so many times `poll.minMs` later: by default the longest pause. */
const FIRST_CROWDED_PAUSES = 8;

/** Beyond the permits themselves, what a look reads at once: the first places, and what hosts with more permits have. */
const MORE_ROWS = 3;

/**
 * A semaphore: as many rows as it has permits, each a lock by itself. Whoever has one of them has a permit, so no more can have
 * one than there are rows, whatever anybody believes about the others.
 *
 * 1. A first guess is a permit that this process knows nothing of, the last that it has released first. It saves the look, as
 *    long as permits are free.
 * 2. Else one query shows which are free. One of these, drawn by chance, is taken by the ordinary claim.
 */
export const SEMAPHORE: LockKind = {
  id: "semaphore",
  queue: SEMAPHORE_QUEUE,
  gate: PERMITS,
  isParallel: true,
  capacity: ({ permits }) => permits,
  lookLimit: ({ permits }) => permits + MORE_ROWS,
  room: (session, resource, rows) => freePermits(session, resource, rows).length,
  weight: weightOf,
  together: ({ permits }, places) => {
    let needed = 0;
    const first = places.findIndex((place) => {
      needed += weightOf(place);
      return needed > permits;
    });
    return Math.max(1, first === -1 ? places.length : first);
  },
  isGate: (resource, { sort }) => isOwn(resource, sort),
  sees: tellOfOthers,
  claim: claimPermit,
  watch: watchPermits,
};

/** As many callers may share a place: the later ones of them are ahead of those behind it as well. */
function weightOf({ data }: Row): number {
  return typeof data?.sections === "number" ? Math.max(1, data.sections) : 1;
}

async function claimPermit(
  session: Session,
  resource: Resource,
  wait: Wait,
  { data, until, seen, ahead, busy, guess }: ResourceClaim,
): Promise<Claimed<Acquisition>> {
  const send = async (permit: number): Promise<Claimed<Acquisition>> => {
    const target = targetOf(resource, permit);
    const { sort } = target.at;
    busy.add(sort);
    let isGranted = false;
    try {
      const result = await claim(session, target, wait, { data, until });
      isGranted = result.kind === "granted";
      return result;
    } finally {
      if (!isGranted) busy.delete(sort);
    }
  };
  const guessed = seen === undefined ? guessOf(session, resource, busy, guess) : undefined;
  if (guessed !== undefined) {
    const result = await send(guessed);
    if (result.kind === "granted") return result;
    wait.throwIfEnough();
    const [{ row }] = result.inTheWay;
    // Others have waited for long: nothing else is free for longer than its holder takes to ask again. A try makes sure.
    if (wait.isPatient && outlastsPause(resource, wait) && isMarked(row, session.clock.wall())) {
      wait.saw(row);
      return result;
    }
  }
  for (let rows = seen; ; rows = undefined) {
    rows ??= await lookAtPermits(session, resource, wait, { isConsistent: true });
    const free = freePermits(session, resource, rows).filter((permit) => !busy.has(permitAt("", permit).sort));
    // Whoever stands behind others in the queue leaves them the first of the free.
    const inOrder = ahead === undefined ? shuffled(free, session.random) : free.slice(ahead);
    let inTheWay = newestOf(resource, rows);
    for (const permit of inOrder.slice(0, MOST_TRIES)) {
      const result = await send(permit);
      if (result.kind === "granted") return result;
      [inTheWay] = result.inTheWay;
      wait.throwIfEnough();
    }
    if (inTheWay !== undefined) {
      wait.saw(inTheWay.row);
      return { kind: "held", inTheWay: [inTheWay] };
    }
    // Other callers of this process ask for all that is free.
    await wait.pacing.again();
  }
}

/** Looks at the permits until one of them looks free. @returns what it has seen last. */
async function watchPermits(
  session: Session,
  resource: Resource,
  [first]: readonly [InTheWay, ...InTheWay[]],
  wait: Wait,
  keptOut: KeptOut,
): Promise<readonly Row[]> {
  const { clock, random } = session;
  const { settings } = resource;
  const { minMs, maxMs } = settings.poll;
  const isFree = (rows: readonly Row[]): boolean => freePermits(session, resource, rows).length > 0;
  wait.saw(first.row);
  // A permit that looked free was not: its holder asks again and again, and has to learn that others wait.
  await contend(session, resource, [first.row], wait, keptOut);
  // A refused guess shows one permit alone: others may be free, and its mark nobody's any more.
  for (let rows: readonly Row[] = [first.row], hasLooked = false; ; hasLooked = true) {
    // It grows over claims that came too late as well: where permits go from hand to hand, a look often shows one that is
    // gone. Where others have waited for long, whoever comes later looks no more often than they do.
    const isCrowded = outlastsPause(resource, wait) && rows.some((row) => isMarked(row, clock.wall()));
    const grown = keptOut.pausedMs === undefined ? minMs : Math.min(maxMs, keptOut.pausedMs * 1.5);
    const crowdedMs = hasLooked ? maxMs : Math.min(maxMs, FIRST_CROWDED_PAUSES * minMs);
    const interval = isCrowded ? crowdedMs : grown;
    keptOut.pausedMs = interval;
    const freeIn = Math.min(...rows.map((row) => untilFree(session, { at: row, settings }, row)));
    await clock.sleep(Math.min(interval * (0.75 + random() / 2), Math.max(1, freeIn)), wait.enough);
    wait.pacing.paused();
    rows = await lookAtPermits(session, resource, wait, { isConsistent: false });
    wait.throwIfEnough();
    const inTheWay = newestOf(resource, rows);
    if (inTheWay === undefined || isFree(rows)) return rows;
    wait.saw(inTheWay.row);
    await contend(session, resource, rows, wait, keptOut);
  }
}

/** Whether a call still looks at least once after the longest pause: one that does not would end without a look. */
function outlastsPause({ settings }: Resource, { remainingMs }: Wait): boolean {
  return remainingMs > 2 * settings.poll.maxMs;
}

/** Learns of the marks on permits that are in the way, and marks one of those that have none. */
async function contend(
  session: Session,
  resource: Resource,
  rows: readonly Row[],
  wait: Wait,
  keptOut: KeptOut,
): Promise<void> {
  for (const row of rows) session.contended().waitsFor(row);
  const [row] = shuffled(
    rows.filter((held) => held.uuid !== undefined && !isMarked(held, session.clock.wall())),
    session.random,
  );
  if (row !== undefined) await mark(session, targetOf(resource, permitOf(row.sort) ?? 0), { row, keptOut, wait });
}

/** The rows of the permits that this caller knows of. */
async function lookAtPermits(
  session: Session,
  resource: Resource,
  wait: Wait,
  { isConsistent }: { readonly isConsistent: boolean },
): Promise<readonly Row[]> {
  const { name, settings, permits } = resource;
  const range = { name, ...PERMITS, limit: permits + MORE_ROWS, consistent: isConsistent };
  const rows: Row[] = [];
  for await (const { page } of pagesOf(session, wait.ask, { ...range, takeover: settings.takeover }))
    rows.push(...page.rows);
  tellOfOthers(session, resource, rows);
  const own = rows.filter(({ sort }) => isOwn(resource, sort));
  noteGone(session, resource, own);
  return own;
}

/** A permit without a row is free, whatever was seen of it before. */
function noteGone({ sightings }: Session, { name, permits }: Resource, rows: readonly Row[]): void {
  const there = new Set(rows.map(({ sort }) => sort));
  for (let permit = 0; permit < permits; permit += 1) {
    const at = permitAt(name, permit);
    if (!there.has(at.sort)) sightings.note(at, undefined);
  }
}

/** The permits that a claim made now would take, in order. */
function freePermits(session: Session, resource: Resource, rows: readonly Row[]): number[] {
  const bySort = new Map(rows.map((row) => [row.sort, row]));
  return numbersTo(resource.permits).filter((permit) => {
    const target = targetOf(resource, permit);
    const row = bySort.get(target.at.sort);
    return row === undefined || looksFree(session, target, row);
  });
}

/** Says once if a holder knows of another number of permits. */
function tellOfOthers(session: Session, { name, permits }: Resource, rows: readonly Row[]): void {
  const other = rows.find((row) => row.permits !== undefined && row.permits !== permits);
  if (other?.permits === undefined || !session.isNews(`${permits}/${other.permits}/${name}`)) return;
  publish("dynamutex:permits-differ", { name, permits, others: other.permits, owner: other.owner });
}

/** A permit that nothing is known against. */
function guessOf(
  session: Session,
  resource: Resource,
  busy: ReadonlySet<string>,
  preferred: string | undefined,
): number | undefined {
  const mayBeFree = (permit: number): boolean => {
    const target = targetOf(resource, permit);
    return !busy.has(target.at.sort) && session.sightings.mayBeFree(target.at, target.settings.takeover);
  };
  const last = preferred === undefined ? undefined : permitOf(preferred);
  if (last !== undefined && last < resource.permits && mayBeFree(last)) return last;
  const start = Math.floor(session.random() * resource.permits);
  for (let tried = 0; tried < resource.permits; tried += 1) {
    const permit = (start + tried) % resource.permits;
    if (mayBeFree(permit)) return permit;
  }
  return undefined;
}

/** The permit that was taken last, of those that are held: if its holder never ends, neither do those before. */
function newestOf(resource: Resource, rows: readonly Row[]): InTheWay | undefined {
  const [row] = [...rows].sort((one, other) => other.acquired - one.acquired);
  return row && { target: targetOf(resource, permitOf(row.sort) ?? 0), row };
}

/** Whether a row is a permit that this caller knows of. */
function isOwn({ permits }: Resource, sort: string): boolean {
  const permit = permitOf(sort);
  return permit !== undefined && permit < permits;
}

function targetOf({ name, settings, permits }: Resource, permit: number): Target {
  return { at: permitAt(name, permit), settings, permits };
}

const numbersTo = (end: number): number[] => Array.from({ length: end }, (_, index) => index);

function shuffled<Value>(values: readonly Value[], random: () => number): Value[] {
  const rest = [...values];
  for (let last = rest.length - 1; last > 0; last -= 1) {
    const chosen = Math.floor(random() * (last + 1));
    [rest[last], rest[chosen]] = [rest[chosen] as Value, rest[last] as Value];
  }
  return rest;
}
