import type { SortRange } from "../protocol/addresses.js";
import { earliestOf } from "../protocol/lease-time.js";
import { mayTake } from "../protocol/may-take.js";
import type { Row } from "../protocol/row.js";
import { firstTimeoutMs, type Request } from "../session/requests.js";
import type { Persistence } from "../session/retry.js";
import type { Session } from "../session/session.js";
import type { TakeoverPolicy } from "../session/sightings.js";
import type { Page, RangeQuery, WriteOutcome } from "../store.js";

/** How many rows are read at once where there are many: less than 40 KB. */
export const PAGE_ROWS = 100;

/** How long the removal of a dead row is tried. */
const REMOVE_WITHIN_MS = 10_000;

/** Sends one read, within the bounds of the call that looks. `skipWith` works as in {@link persist}. */
export type Ask = <T>(request: Request<T>, skipWith?: () => Promise<T> | undefined) => Promise<T>;

/** What was known when a request left: what its reply shows may be no newer than that. */
export interface Known {
  /** The lower bound of the table's time: `expires` may be compared with it. */
  readonly earliest: number;
  /** On `atLeast`. */
  readonly asOf: number;
  /** On `atMost`. */
  readonly sentAt: number;
}

/** Call this before the request leaves: a row in its reply may have been renewed before the reply arrives. */
export function knownNow({ clock }: Session, takeover: TakeoverPolicy): Known {
  const bounds = takeover === "unchanged" ? undefined : clock.wall();
  return { earliest: earliestOf(bounds), asOf: clock.atLeast(), sentAt: clock.atMost() };
}

/**
 * Whether no process relies on a row that a reply has shown, judged by what was known before the request left. The row must
 * have been noted.
 */
export function isDead({ sightings }: Session, row: Row, { earliest, asOf }: Known): boolean {
  return mayTake(row, { earliest, unchanged: sightings.unchanged(row, asOf) });
}

/** The request that removes a row, and the bounds of its time. */
export interface Removal {
  readonly bounds: Pick<Persistence, "firstTimeoutMs" | "until">;
  readonly request: Request<WriteOutcome>;
}

/** How a row that is dead is removed: on the condition that it is still exactly as it was seen. */
export function removalOf(
  { clock, store }: Session,
  { name, sort, uuid: seenUuid, expires: seenExpires }: Row,
  ttlMs: number,
): Removal {
  const giveUpAt = clock.atMost() + REMOVE_WITHIN_MS;
  const write = { kind: "remove", at: { name, sort }, seenUuid, seenExpires } as const;
  return {
    bounds: { until: () => giveUpAt, firstTimeoutMs: firstTimeoutMs(ttlMs) },
    request: (signal) => store.write(write, signal),
  };
}

/** A page of rows, with what was known when it was asked for. */
export type KnownPage = Page<string> & Known;

/**
 * Reads rows of one name, page by page. The first page has the limit of the range, and further ones have {@link PAGE_ROWS}.
 * @throws BadRow for an item under one of these keys that is none of our rows.
 */
export async function* pagesOf(
  session: Session,
  ask: Ask,
  range: Omit<RangeQuery, "after"> & { readonly takeover: TakeoverPolicy },
  onSent: () => void = () => undefined,
): AsyncGenerator<{ readonly page: KnownPage; readonly isLast: boolean }, void, undefined> {
  const { takeover, ...first } = range;
  for (let rest: RangeQuery | undefined = first; rest !== undefined; ) {
    const query: RangeQuery = rest;
    const page: KnownPage = await ask(async (signal) => {
      if (query === first) onSent();
      const known = knownNow(session, takeover);
      return { ...(await session.store.query(query, signal)), ...known };
    });
    const [bad] = page.bad;
    if (bad !== undefined) throw bad;
    rest = nextRange(query, page);
    for (const row of page.rows) session.sightings.note(row, row);
    yield { page, isLast: rest === undefined };
  }
}

/** The rest of a range after one of its pages. It gets smaller with every page, so that no reply can make an endless loop. */
export function nextRange<Part extends SortRange & Pick<RangeQuery, "after">>(
  range: Part,
  { next }: Page<string>,
): (Part & { readonly limit: number }) | undefined {
  if (next === undefined || next < (range.after ?? range.first) || next === range.after) return undefined;
  return next < range.last ? { ...range, after: next, limit: PAGE_ROWS } : undefined;
}
