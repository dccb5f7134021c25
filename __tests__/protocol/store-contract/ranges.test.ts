import { randomUUID } from "node:crypto";
import { beforeAll, describe, expect, test } from "@jest/globals";
import {
  kindOf,
  LOCK_SORT,
  lockAt,
  MUTEX_QUEUE,
  PERMITS,
  permitAt,
  placeAt,
  placesOf,
  READERS,
  readerAt,
  SEMAPHORE_QUEUE,
  SHARED_MUTEX_QUEUE,
  type SortRange,
  WRITER_SORT,
  writerAt,
} from "../../../lib/protocol/addresses.js";
import type { Row } from "../../../lib/protocol/row.js";
import type { Cursor, Page, RangeQuery } from "../../../lib/store.js";
import { FOREIGN_SORTS } from "../../support/store-cases.js";
import { SORTED_SUBJECTS, useSubject } from "../../support/store-subjects.js";
import { APPLIED, removalOf, transferOf } from "../../support/write-cases.js";

const forever = new AbortController().signal;

const READER_UUIDS = ["0a000000-0000-4000-8000-000000000000", "fa000000-0000-4000-8000-000000000000"];

/** All rows of one name, as if every kind of lock used it: in the order of their sort keys. */
const SORTS = [
  lockAt("").sort,
  ...[4n, 99n, 100n].map((ticket) => placeAt("", ticket, MUTEX_QUEUE).sort),
  ...READER_UUIDS.map((uuid) => readerAt("", uuid).sort),
  ...[0, 1, 9, 10, 999].map((permit) => permitAt("", permit).sort),
  ...[3n, 9n, 10n].map((ticket) => placeAt("", ticket, SEMAPHORE_QUEUE).sort),
  writerAt("").sort,
  ...[5n, 10n ** 37n].map((ticket) => placeAt("", ticket, SHARED_MUTEX_QUEUE).sort),
];

const PERMIT_QUEUE = placesOf(SEMAPHORE_QUEUE);
const WRITER_QUEUE = placesOf(SHARED_MUTEX_QUEUE);

/** What is looked at together, and which rows that shows. */
const RANGES: readonly (readonly [string, SortRange, readonly string[]])[] = [
  ["everything, counters and all", { first: "a", last: "z" }, SORTS],
  ["the permits", PERMITS, SORTS.slice(6, 11)],
  ["the permits and their queue", { first: PERMITS.first, last: PERMIT_QUEUE.last }, SORTS.slice(6, 14)],
  ["the queue of the permits", PERMIT_QUEUE, SORTS.slice(11, 14)],
  ["a mutex and its queue", { first: LOCK_SORT, last: placesOf(MUTEX_QUEUE).last }, SORTS.slice(0, 4)],
  ["the queue of a mutex", placesOf(MUTEX_QUEUE), SORTS.slice(1, 4)],
  ["the readers", READERS, SORTS.slice(4, 6)],
  ["the writer and its queue", { first: WRITER_SORT, last: WRITER_QUEUE.last }, SORTS.slice(14)],
  ["from the readers to the queue of the writer", { first: READERS.first, last: WRITER_QUEUE.last }, SORTS.slice(4)],
];

describe.each(SORTED_SUBJECTS)("the ranges of a store %s", (_, subjectOf) => {
  const { plant, plantItem, read, store, write } = useSubject(subjectOf);
  const name = randomUUID();

  beforeAll(async () => {
    for (const sort of [...SORTS].reverse()) await plant({ name, sort });
    for (const { counter } of [MUTEX_QUEUE, SEMAPHORE_QUEUE, SHARED_MUTEX_QUEUE])
      await write({ kind: "draw", at: { name, sort: counter }, seed: 1_000 });
    // Nothing that an application keeps in between is taken for a row, whatever it looks like.
    for (const sort of FOREIGN_SORTS) await plantItem({ name, sort }, { mark: "their own" });
    // Neither are the rows of another name.
    await plant({ name: `${name}2`, sort: permitAt("", 2).sort });
  });

  const query = (differences: Partial<RangeQuery>): Promise<Page<string>> => {
    const all = { first: "a", last: "z", limit: 100, consistent: true };
    return store().query({ name, ...all, ...differences }, forever);
  };

  /** All pages of a range, however long they are: a store may end one early. */
  const all = async (range: Partial<RangeQuery>): Promise<readonly Row[]> => {
    const { rows, next } = await query(range);
    expect(rows.length).toBeLessThanOrEqual(range.limit ?? 100);
    // Or there would be no end to it.
    if (next !== undefined) expect(next > (range.after ?? "")).toBe(true);
    return next === undefined ? rows : [...rows, ...(await all({ ...range, after: next }))];
  };
  const sortsIn = async (range: Partial<RangeQuery>) => (await all(range)).map(({ sort }) => sort);

  test.each(RANGES)(
    "%s: its rows in the order of their keys, each once, page after page",
    async (_range, range, sorts) => {
      for (const limit of [1, 2, 3, 7, 100]) expect(await sortsIn({ ...range, limit })).toEqual(sorts);
    },
  );

  test("a page starts right behind the row where the one before it ended", async () => {
    for (const [index, after] of SORTS.entries()) expect(await sortsIn({ after })).toEqual(SORTS.slice(index + 1));
  });

  test("it does so behind a row that is gone, behind a counter, and behind an item of somebody else's", async () => {
    expect(await sortsIn({ ...PERMITS, after: permitAt("", 5).sort })).toEqual(SORTS.slice(8, 11));
    expect(await sortsIn({ after: SEMAPHORE_QUEUE.counter })).toEqual(SORTS.slice(14));
    expect(await sortsIn({ after: MUTEX_QUEUE.counter })).toEqual(SORTS.slice(14));
    expect(await sortsIn({ after: "member#1" })).toEqual(SORTS.slice(1));
  });

  test("behind the last row of a range there is nothing", async () => {
    for (const [, range, sorts] of RANGES) {
      expect(await query({ ...range, after: sorts.at(-1) })).toMatchObject({ rows: [] });
      expect(await sortsIn({ ...range, after: sorts.at(-1) })).toEqual([]);
    }
  });

  test("a page says that it ends within its range, and never where it began", async () => {
    for (const [, range] of RANGES) {
      let after: string | undefined;
      for (;;) {
        const { next } = await query({ ...range, after, limit: 1 });
        if (next === undefined) break;
        expect(next > (after ?? "")).toBe(true);
        expect([range.first <= next, next <= range.last]).toEqual([true, true]);
        after = next;
      }
    }
  });

  test("a lock without waiters has its row on the first page, and no place, whatever its counter has given", async () => {
    const held = await plant();
    await write({ kind: "draw", at: { name: held.name, sort: MUTEX_QUEUE.counter }, seed: 1_000 });
    const queue = { name: held.name, ...placesOf(MUTEX_QUEUE), limit: 2 };
    expect((await query({ ...queue, first: LOCK_SORT })).rows).toEqual([held]);
    expect((await query(queue)).rows).toEqual([]);
  });

  test("rows are shown as they are: with their permits, with a holder or without", async () => {
    const own = randomUUID();
    const rows = [
      await plant({ ...readerAt(own, randomUUID()), wanted: 5 }),
      await plant({ ...permitAt(own, 0), permits: 3, data: { a: 1 } }),
      await plant({ ...permitAt(own, 1), permits: 2, fence: 7n }),
      await plant({ ...permitAt(own, 2), uuid: undefined, expires: 0, fence: 2n ** 80n, permits: 3 }),
      await plant({ ...writerAt(own), uuid: undefined }),
    ];
    expect(await all({ name: own })).toEqual(rows);
    for (const row of rows) expect(await read(row)).toEqual(row);
  });

  test.each([
    ["permit", permitAt],
    ["reader", (own: string) => readerAt(own, READER_UUIDS[0] as string)],
    ["writer", writerAt],
    ["place of a semaphore", (own: string) => placeAt(own, 7n, SEMAPHORE_QUEUE)],
  ] as const)("a %s is handed on and removed as a lock is", async (_kind, at) => {
    const row = await plant({ ...at(randomUUID(), 0), uuid: "mine", expires: 99, permits: 3 });
    expect(await write(transferOf(row))).toEqual({ ...APPLIED, replaced: row });
    const handedOn = { ...row, uuid: "fresh", expires: 100, ttlMs: 7_000, owner: "host#3" };
    expect((await query({ name: row.name })).rows).toEqual([handedOn]);
    expect(await write(removalOf(row, "fresh", 100))).toEqual(APPLIED);
    expect(await query({ name: row.name })).toEqual({ rows: [], bad: [], next: undefined });
  });

  test("those that somebody may hold are listed, and no places", async () => {
    const own = randomUUID();
    for (const sort of SORTS) await plant({ name: own, sort });
    const listed: string[] = [];
    for (let after: Cursor | undefined, more = true; more; more = after !== undefined) {
      const page = await store().scan(own, after, forever);
      listed.push(...page.rows.map(({ sort }) => sort));
      after = page.next;
    }
    expect(listed.sort()).toEqual(SORTS.filter((sort) => kindOf(sort) !== "place").sort());
  });
});
