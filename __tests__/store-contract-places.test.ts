import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { LockStoreError } from "../lib/errors.js";
import {
  type Address,
  LOCK_SORT,
  lockAt,
  MUTEX_QUEUE,
  placeAt,
  placeSort,
  placesOf,
  ticketOf,
} from "../lib/protocol/addresses.js";
import { FORMAT, type Row } from "../lib/protocol/row.js";
import type { Take, Write } from "../lib/protocol/writes.js";
import type { Page, RangeQuery } from "../lib/store.js";
import { itemOf, rowOf, rowWith, takeWith } from "./support/store-cases.js";
import { type Subject, sortedSubjects, tableSubject } from "./support/store-subjects.js";
import { testClient } from "./support/table.js";
import { APPLIED, FREE, removalOf, vacateOf } from "./support/write-cases.js";

const client = testClient();

const forever = new AbortController().signal;
const PLACES = placesOf(MUTEX_QUEUE);

/** A place: it is taken where there is none, and in this suite where it is over at 1 000 as well. */
function lineUp(differences: Partial<Take> = {}): Take {
  const knowledge = { earliest: 1_000 };
  return takeWith({ at: placeAt(randomUUID(), 7n), expires: 2_000, acquired: 500, knowledge, ...differences });
}

function counterAt(name: string): Address {
  return { name, sort: MUTEX_QUEUE.counter };
}

describe.each(sortedSubjects(client))("the places of a store %s", (_, subjectOf) => {
  let subject: Subject;

  beforeAll(async () => {
    subject = await subjectOf();
  });
  afterAll(() => subject.end());

  const write = (value: Write) => subject.store.write(value, new AbortController().signal);
  const draw = async (name: string, seed: number) => {
    const outcome = await write({ kind: "draw", at: counterAt(name), seed });
    return outcome.kind === "applied" ? outcome.drawn : undefined;
  };
  const plantCounter = (name: string, last: bigint) => subject.plant(counterAt(name), { format: FORMAT, n: last });
  const plant = async (differences: Partial<Row> = {}): Promise<Row> => {
    const row = rowWith({ sort: placeSort(7n), expires: 2_000, ...differences });
    await subject.plant(row, itemOf(row));
    return row;
  };
  const query = (name: string, differences: Partial<RangeQuery> = {}): Promise<Page<string>> => {
    const all = { ...PLACES, limit: 100, consistent: true };
    return subject.store.query({ name, ...all, ...differences }, forever);
  };
  const placesAt = async (name: string) => (await query(name)).rows;
  const read = (at: Address) => subject.store.read(at, { consistent: true }, forever);

  describe("drawing", () => {
    test("a counter makes itself, from the seed on, and gives every number once", async () => {
      const name = randomUUID();
      const drawn = await Promise.all(Array.from({ length: 20 }, () => draw(name, 1_000)));
      expect(drawn.map(Number).sort((one, other) => one - other)).toEqual(
        Array.from({ length: 20 }, (_n, i) => 1_001 + i),
      );
    });

    test("a counter that exists goes on, whatever the seed", async () => {
      const name = randomUUID();
      await plantCounter(name, 5n);
      expect(await draw(name, 1_000)).toBe(6n);
    });

    test("a counter that was purged starts behind all that it ever gave, because its seed is a time", async () => {
      const name = randomUUID();
      const before = await draw(name, 1_000_000);
      await subject.plant(counterAt(name), undefined);
      expect(await draw(name, 1_000_500)).toBeGreaterThan(before ?? 0n);
    });

    test("numbers stay exact up to 38 digits", async () => {
      const name = randomUUID();
      await plantCounter(name, 10n ** 38n - 3n);
      expect(await draw(name, 1)).toBe(10n ** 38n - 2n);
    });

    test("counters of several names have nothing to do with one another", async () => {
      for (const name of [randomUUID(), randomUUID()]) expect(await draw(name, 10)).toBe(11n);
    });

    test.each([
      ["without a format", { n: 5, mark: "their own" }],
      ["that counts with something else than a number", { n: "5", format: FORMAT, mark: "their own" }],
      ["that does not count", { format: FORMAT, mark: "their own" }],
    ])("an item of somebody else's %s is shown and left alone", async (_case, item) => {
      const at = counterAt(randomUUID());
      await subject.plant(at, item);
      const error = await write({ kind: "draw", at, seed: 1_000 }).catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(LockStoreError);
      expect(error).toMatchObject({ transient: false, message: expect.stringContaining("their own") });
      expect(await subject.item(at)).toEqual(item);
    });
  });

  describe("lining up", () => {
    test("the row is there, as it was written", async () => {
      const taking = lineUp();
      expect(await write(taking)).toEqual(APPLIED);
      expect(await placesAt(taking.at.name)).toEqual([rowOf(taking)]);
    });

    test("an item of somebody else's is shown and left alone", async () => {
      const taking = lineUp();
      const { at, uuid } = taking;
      await subject.plant(at, { mark: "their own" });
      const operations = [
        () => write(taking),
        () => write({ kind: "renew", at, uuid, expires: 3_000, remembers: "nothing" }),
        () => write(vacateOf(at, uuid, FREE)),
        () => write(removalOf(at, uuid, 2_000)),
        () => read(at),
        async () => {
          for (const bad of (await query(at.name)).bad) throw bad;
        },
      ];
      for (const operation of operations) {
        const error = await operation().catch((thrown: unknown) => thrown);
        expect(error).toBeInstanceOf(LockStoreError);
        expect(error).toMatchObject({ transient: false, message: expect.stringContaining("their own") });
      }
      expect(await subject.item(at)).toEqual({ mark: "their own" });
    });
  });

  describe("reading", () => {
    const TICKETS = [3n, 9n, 10n, 99n, 1_763_000_000_000n, 10n ** 37n];
    let name: string;

    beforeAll(async () => {
      name = randomUUID();
      await plant({ name, sort: LOCK_SORT, uuid: "holder" });
      await plantCounter(name, 10n ** 37n);
      for (const ticket of [...TICKETS].reverse()) await plant({ name, sort: placeSort(ticket) });
    });

    /** The lock's own row is shown as `lock`. */
    const shown = async (differences: Partial<RangeQuery>) => {
      const { rows, next } = await query(name, differences);
      return { rows: rows.map(({ sort }) => ticketOf(sort) ?? sort), next };
    };

    /** All pages of a range, whatever they are long: a store may end one early. */
    const all = async (range: Partial<RangeQuery>): Promise<unknown[]> => {
      const { rows, next } = await shown(range);
      expect(rows.length).toBeLessThanOrEqual(range.limit ?? Number.POSITIVE_INFINITY);
      if (next === undefined) return rows;
      return [...rows, ...(await all({ ...range, after: next }))];
    };

    test("from the lock's own row on: it, then the places by number, and never the counter", async () => {
      expect(await all({ first: LOCK_SORT })).toEqual([LOCK_SORT, ...TICKETS]);
    });

    test("from a ticket on, up to one, and behind one", async () => {
      expect(await all({ first: placeSort(10n), last: placeSort(99n) })).toEqual([10n, 99n]);
      expect(await all({ after: placeSort(10n), last: placeSort(99n) })).toEqual([99n]);
      expect(await all({ last: placeSort(2n) })).toEqual([]);
    });

    test.each([1, 2, 3, 100])("pages of %i show all, each once", async (limit) => {
      expect(await all({ limit })).toEqual(TICKETS);
    });

    test("a page that ends with the lock's own row goes on behind it", async () => {
      expect(await shown({ first: LOCK_SORT, limit: 1 })).toEqual({ rows: [LOCK_SORT], next: LOCK_SORT });
    });

    test("a lock that nobody holds or waits for has an empty page", async () => {
      expect(await query(randomUUID(), { first: LOCK_SORT, limit: 2 })).toEqual({ rows: [], bad: [], next: undefined });
    });

    test("a lock without waiters is not taken for one with", async () => {
      const held = await plant({ sort: LOCK_SORT });
      await plantCounter(held.name, 4n);
      expect((await query(held.name, { first: LOCK_SORT, limit: 2 })).rows).toEqual([held]);
      expect((await query(held.name, { limit: 2 })).rows).toEqual([]);
    });

    test("what an application keeps between the lock's row and its places is none of ours", async () => {
      const row = await plant();
      await subject.plant({ name: row.name, sort: "member#1" }, { mark: "their own" });
      expect((await query(row.name, { first: LOCK_SORT, limit: 3 })).rows).toEqual([row]);
    });

    test("places are not listed as locks", async () => {
      const row = await plant({ name: `${randomUUID()}-1` });
      const { rows } = await subject.store.scan(row.name, undefined, forever);
      expect(rows).toEqual([]);
    });
  });

  test("a request that was given up beforehand changes nothing", async () => {
    const taking = lineUp();
    const error = await subject.store.write(taking, AbortSignal.abort()).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(LockStoreError);
    expect(error).toMatchObject({ transient: true, answered: false });
    expect(await placesAt(taking.at.name)).toEqual([]);
  });
});

describe("a table without a sort key", () => {
  let subject: Subject;

  beforeAll(async () => {
    subject = await tableSubject(client, { keys: { sort: null } });
  });
  afterAll(() => subject.end());

  test("has no rows beside the locks' own, and never takes one for the other", async () => {
    const { store } = subject;
    const at = placeAt(randomUUID(), 7n);
    const range = { name: at.name, ...PLACES, limit: 1, consistent: true };
    const operations: readonly (() => Promise<unknown>)[] = [
      () => store.write(lineUp({ at }), forever),
      () => store.write({ kind: "draw", at: counterAt(at.name), seed: 1 }, forever),
      () => store.writeAll([lineUp({ at })], forever),
      () => store.read(at, { consistent: true }, forever),
      () => store.query(range, forever),
    ];
    for (const operation of operations) await expect(operation()).rejects.toThrow("has no sort key");
    expect(await subject.item(lockAt(at.name))).toBeUndefined();
  });
});
