import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { LockStoreError } from "../../lib/errors.js";
import type { PageRequest, TicketStore, Waiter } from "../../lib/ticket-store.js";
import { rowWith } from "../support/store-cases.js";
import { memorySubject, type Subject, tableSubject } from "../support/store-subjects.js";
import { testClient } from "../support/table.js";

const client = testClient();

const SUBJECTS: readonly (readonly [string, () => Promise<Subject>])[] = [
  ["in memory", memorySubject],
  ["in a table", () => tableSubject(client, {})],
  [
    "in an application's table, under reserved words and a prefix",
    () => tableSubject(client, { keys: { partition: "key", sort: "order", ttl: "ttl" }, keyPrefix: "lock#" }),
  ],
];

const forever = new AbortController().signal;
const APPLIED = { kind: "applied" };
const GONE = { kind: "refused", waiter: undefined };

function waiterWith(differences: Partial<Waiter>): Waiter {
  const waiter = { uuid: randomUUID(), expires: 1_000, ttlMs: 30_000, owner: "host#1", acquired: 500 };
  return { name: randomUUID(), ticket: 7n, ...waiter, ...differences };
}

function ticketsOf({ store: { tickets } }: Subject): TicketStore {
  if (tickets === undefined) throw new Error("a store without a queue");
  return tickets;
}

describe.each(SUBJECTS)("the queue of a store %s", (_, subjectOf) => {
  let subject: Subject;

  beforeAll(async () => {
    subject = await subjectOf();
  });
  afterAll(() => subject.end());

  const tickets = () => ticketsOf(subject);
  const plant = async (differences: Partial<Waiter>): Promise<Waiter> => {
    const waiter = waiterWith(differences);
    await subject.plantWaiter(waiter);
    return waiter;
  };
  const page = (name: string, request: PageRequest) => tickets().page(name, request, { consistent: true }, forever);
  const waitersOf = async (name: string) => (await page(name, { from: "front", after: -1n, limit: 100 })).waiters;

  describe("drawing", () => {
    test("a counter makes itself, from the seed on, and gives every number once", async () => {
      const name = randomUUID();
      const drawn = await Promise.all(Array.from({ length: 20 }, () => tickets().draw(name, 1_000, forever)));
      expect(drawn.map(Number).sort((one, other) => one - other)).toEqual(
        Array.from({ length: 20 }, (_n, i) => 1_001 + i),
      );
    });

    test("a counter that exists goes on, whatever the seed", async () => {
      const name = randomUUID();
      await subject.plantCounter(name, 5n);
      expect(await tickets().draw(name, 1_000, forever)).toBe(6n);
    });

    test("a counter that was purged starts behind all that it ever gave, because its seed is a time", async () => {
      const name = randomUUID();
      const before = await tickets().draw(name, 1_000_000, forever);
      await subject.plantCounter(name, undefined);
      expect(await tickets().draw(name, 1_000_500, forever)).toBeGreaterThan(before);
    });

    test("numbers stay exact up to 38 digits", async () => {
      const name = randomUUID();
      await subject.plantCounter(name, 10n ** 38n - 3n);
      expect(await tickets().draw(name, 1, forever)).toBe(10n ** 38n - 2n);
    });

    test("counters of several names have nothing to do with one another", async () => {
      const names = [randomUUID(), randomUUID()];
      for (const name of names) expect(await tickets().draw(name, 10, forever)).toBe(11n);
    });
  });

  describe("lining up", () => {
    test("the row is there, as it was written", async () => {
      const waiter = waiterWith({});
      expect(await tickets().enqueue(waiter, forever)).toEqual(APPLIED);
      expect(await waitersOf(waiter.name)).toEqual([waiter]);
    });

    test("a second copy is refused by the row that the first one wrote, renewed or not", async () => {
      const waiter = waiterWith({});
      await tickets().enqueue(waiter, forever);
      expect(await tickets().enqueue(waiter, forever)).toEqual({ kind: "refused", waiter });
      await tickets().renew(waiter, 2_000, forever);
      const renewed = { ...waiter, expires: 2_000 };
      expect(await tickets().enqueue(waiter, forever)).toEqual({ kind: "refused", waiter: renewed });
      expect(await waitersOf(waiter.name)).toEqual([renewed]);
    });

    test("another waiter's row is never overwritten, even where it is over", async () => {
      const theirs = await plant({ expires: 1 });
      const outcome = await tickets().enqueue(waiterWith({ name: theirs.name }), forever);
      expect(outcome).toEqual({ kind: "refused", waiter: theirs });
      expect(await waitersOf(theirs.name)).toEqual([theirs]);
    });
  });

  describe("renewing", () => {
    test.each<readonly [string, Partial<Waiter>, boolean]>([
      ["an earlier stamp is moved forward", { expires: 99 }, true],
      ["the very stamp is refused, so that a copy shows", { expires: 100 }, false],
      ["a later stamp is never moved back", { expires: 101 }, false],
      ["another waiter's row is left alone", { uuid: "another", expires: 99 }, false],
    ])("%s", async (_case, differences, applied) => {
      const waiter = await plant({ uuid: "mine", ...differences });
      const outcome = await tickets().renew({ ...waiter, uuid: "mine" }, 100, forever);
      expect(outcome).toEqual(applied ? APPLIED : { kind: "refused", waiter });
      expect(await waitersOf(waiter.name)).toEqual([applied ? { ...waiter, expires: 100 } : waiter]);
    });

    test("no row is made where there is none", async () => {
      const waiter = waiterWith({});
      expect(await tickets().renew(waiter, 100, forever)).toEqual(GONE);
      expect(await waitersOf(waiter.name)).toEqual([]);
    });
  });

  describe("removing", () => {
    test("a waiter's own row goes, whatever its stamp; a copy of the removal finds nothing", async () => {
      const waiter = await plant({});
      expect(await tickets().leave(waiter, forever)).toEqual(APPLIED);
      expect(await tickets().leave(waiter, forever)).toEqual(GONE);
      expect(await waitersOf(waiter.name)).toEqual([]);
    });

    test("another's row stays", async () => {
      const waiter = await plant({});
      expect(await tickets().leave({ ...waiter, uuid: "mine" }, forever)).toEqual(GONE);
      expect(await waitersOf(waiter.name)).toEqual([waiter]);
    });

    test.each<readonly [string, Partial<Waiter>, boolean]>([
      ["exactly as it was seen goes", {}, true],
      ["renewed in between stays", { expires: 101 }, false],
      ["of another waiter stays", { uuid: "another" }, false],
    ])("a dead waiter's row that is %s", async (_case, differences, applied) => {
      const waiter = await plant({ uuid: "theirs", expires: 100, ...differences });
      const seen = { ...waiter, uuid: "theirs", expires: 100 };
      expect(await tickets().sweep(seen, forever)).toEqual(applied ? APPLIED : GONE);
      expect(await waitersOf(waiter.name)).toEqual(applied ? [] : [waiter]);
    });
  });

  describe("reading", () => {
    const TICKETS = [3n, 9n, 10n, 99n, 1_763_000_000_000n, 10n ** 37n];
    let name: string;
    const ofPage = async (request: PageRequest) => {
      const { row, waiters, next } = await page(name, request);
      return { row: row?.uuid, tickets: waiters.map(({ ticket }) => ticket), next };
    };

    beforeAll(async () => {
      name = randomUUID();
      await subject.plant(rowWith({ name, uuid: "holder" }));
      await subject.plantCounter(name, 10n ** 37n);
      for (const ticket of [...TICKETS].reverse()) await plant({ name, ticket });
    });

    test("from the front: the lock's own row, then the waiters by number, and never the counter", async () => {
      expect(await ofPage({ from: "front", limit: 100 })).toEqual({ row: "holder", tickets: TICKETS, next: undefined });
    });

    test("from the end: the waiters alone", async () => {
      const tickets = [...TICKETS].reverse();
      expect(await ofPage({ from: "end", limit: 100 })).toEqual({ row: undefined, tickets, next: undefined });
    });

    test("before a ticket, and after one", async () => {
      expect(await ofPage({ from: "end", before: 10n, limit: 1 })).toMatchObject({ tickets: [9n] });
      expect(await ofPage({ from: "end", before: 3n, limit: 1 })).toEqual({
        row: undefined,
        tickets: [],
        next: undefined,
      });
      expect(await ofPage({ from: "front", after: 10n, limit: 1 })).toMatchObject({ tickets: [99n] });
    });

    test.each([1, 2, 3, 100])("pages of %i show all, each once, in either direction", async (limit) => {
      for (const from of ["front", "end"] as const) {
        const shown: bigint[] = [];
        let cursor: bigint | undefined;
        do {
          const request = from === "front" ? { from, after: cursor, limit } : { from, before: cursor, limit };
          const { row, tickets, next } = await ofPage(request);
          expect(tickets.length + (row === undefined ? 0 : 1)).toBeLessThanOrEqual(limit);
          shown.push(...tickets);
          cursor = next;
        } while (cursor !== undefined);
        expect(shown).toEqual(from === "front" ? TICKETS : [...TICKETS].reverse());
      }
    });

    test("a lock that nobody holds or waits for has an empty page", async () => {
      const request = { from: "front", limit: 2 } as const;
      expect(await page(randomUUID(), request)).toEqual({ row: undefined, waiters: [], next: undefined });
    });

    test("a lock without waiters is not taken for one with", async () => {
      const held = rowWith({});
      await subject.plant(held);
      await subject.plantCounter(held.name, 4n);
      expect(await page(held.name, { from: "front", limit: 2 })).toMatchObject({ row: held, waiters: [] });
      expect(await page(held.name, { from: "end", limit: 2 })).toMatchObject({ row: undefined, waiters: [] });
    });
  });

  test("a request that was given up beforehand changes nothing", async () => {
    const waiter = waiterWith({});
    const error = await tickets()
      .enqueue(waiter, AbortSignal.abort())
      .catch((e: unknown) => e);
    expect(error).toBeInstanceOf(LockStoreError);
    expect(error).toMatchObject({ transient: true, answered: false });
    expect(await waitersOf(waiter.name)).toEqual([]);
  });
});

describe("items of somebody else's in a queue", () => {
  let subject: Subject;

  beforeAll(async () => {
    subject = await tableSubject(client, {});
  });
  afterAll(() => subject.end());

  const queueKey = { sort: { S: `queue#${"7".padStart(38, "0")}` } };
  const mark = { mark: { S: "their own" } };

  test("under a waiter's key are shown, and no operation touches them", async () => {
    const waiter = waiterWith({});
    await subject.plantForeign(waiter.name, { ...queueKey, ...mark });
    const tickets = ticketsOf(subject);
    const readers = [
      () => tickets.enqueue(waiter, forever),
      () => tickets.renew(waiter, 2_000, forever),
      () => tickets.page(waiter.name, { from: "end", limit: 2 }, { consistent: true }, forever),
    ];
    for (const operation of readers) {
      const error = await operation().catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(LockStoreError);
      expect(error).toMatchObject({ transient: false, message: expect.stringContaining('"mark":{"S":"their own"}') });
    }
    expect(await tickets.leave(waiter, forever)).toEqual(GONE);
    expect(await tickets.sweep(waiter, forever)).toEqual(GONE);
    await expect(readers[2]?.()).rejects.toThrow("their own");
  });

  test.each([
    ["without a format", { n: { N: "5" } }],
    ["that counts with something else than a number", { n: { S: "5" }, format: { N: "1" } }],
  ])("a counter %s is shown and left alone", async (_case, attributes) => {
    const name = randomUUID();
    await subject.plantForeign(name, { sort: { S: "tickets" }, ...attributes, ...mark });
    await expect(ticketsOf(subject).draw(name, 1_000, forever)).rejects.toMatchObject({
      code: "LOCK_STORE",
      transient: false,
      message: expect.stringContaining('"mark":{"S":"their own"}'),
    });
  });

  test("between the lock's row and the queue are none of ours", async () => {
    const waiter = waiterWith({});
    await subject.plantWaiter(waiter);
    await subject.plantForeign(waiter.name, { sort: { S: "member#1" }, ...mark });
    const request = { from: "front", limit: 3 } as const;
    const { row, waiters } = await ticketsOf(subject).page(waiter.name, request, { consistent: true }, forever);
    expect([row, waiters]).toEqual([undefined, [waiter]]);
  });
});
