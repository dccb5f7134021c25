import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { LockConfigError, LockStoreError } from "../lib/errors.js";
import type { Claim, Guard, Row, Stamped, Take, Terms, WriteOutcome } from "../lib/store.js";
import { claimWith, EARLIEST, FOREIGN, NOTHING_ELSE, rowWith, TAKES, UNSTORABLE } from "./support/store-cases.js";
import { memorySubject, type Subject, tableSubject } from "./support/store-subjects.js";
import { testClient } from "./support/table.js";

const client = testClient();

const SUBJECTS: readonly (readonly [string, () => Promise<Subject>])[] = [
  ["in memory", memorySubject],
  ["in a table with a sort key", () => tableSubject(client, {})],
  ["in a table without one", () => tableSubject(client, { keys: { sort: null } })],
  [
    "in an application's table, under reserved words and a prefix",
    () => tableSubject(client, { keys: { partition: "key", sort: "order", ttl: "ttl" }, keyPrefix: "lock#" }),
  ],
];

const forever = new AbortController().signal;
const CONSISTENT = { consistent: true };
const GONE: WriteOutcome = { kind: "refused", row: undefined, retried: false };

describe.each(SUBJECTS)("a store %s", (_, subjectOf) => {
  let subject: Subject;

  beforeAll(async () => {
    subject = await subjectOf();
  });
  afterAll(() => subject.end());

  const store = () => subject.store;
  const read = (name: string) => subject.store.read(name, CONSISTENT, forever);
  const plant = async (differences: Partial<Row>): Promise<Row> => {
    const row = rowWith(differences);
    await subject.plant(row);
    return row;
  };

  describe.each([
    ["a row that remembers nothing", { kept: false, ticked: false }],
    ["a row that is kept", { kept: true, ticked: false }],
    ["a row with a tick", { kept: true, ticked: true }],
  ])("taking %s", (_kind, { kept, ticked }) => {
    const terms = (more: Partial<Terms> = {}): Terms => ({ earliest: EARLIEST, kept, ticked, ...more });

    test("a lock without a row is granted, and the row is the claim", async () => {
      const claim = claimWith({ data: { job: "report" } });
      expect(await store().take(claim, terms({ earliest: 1 }), forever)).toEqual({ kind: "granted" });
      expect(await read(claim.name)).toEqual({ ...NOTHING_ELSE, ...claim });
    });

    test("a row is taken if, and only if, no holder is behind it and a put would wipe out nothing", async () => {
      for (const { row: differences, unchanged, tick: asked, free } of TAKES) {
        if (asked !== undefined && !ticked) continue;
        const row = await plant(differences);
        const claim = claimWith({ name: row.name, tick: asked });
        const outcome = await store().take(claim, terms({ unchanged }), forever);
        const expected = free === "yes" || (free === "if kept" && kept) || (free === "if ticked" && ticked);
        expect({ differences, unchanged, asked, outcome }).toEqual({
          differences,
          unchanged,
          asked,
          outcome: expected ? { kind: "granted", replaced: row } : { kind: "held", row },
        });
        const { fence } = row;
        const tick = asked ?? row.tick;
        expect(await read(row.name)).toEqual(expected ? { ...NOTHING_ELSE, ...claim, fence, tick } : row);
      }
    });

    test("without a clock to trust, a lease that is long over is not free", async () => {
      const row = await plant({ expires: 1 });
      const outcome = await store().take(claimWith({ name: row.name }), terms({ earliest: 1 }), forever);
      expect(outcome).toEqual({ kind: "held", row });
    });

    test("a second copy of a claim is refused by the row that the first one wrote", async () => {
      const claim = claimWith({});
      await store().take(claim, terms(), forever);
      const outcome = await store().take(claim, terms(), forever);
      expect(outcome).toMatchObject({ kind: "held", row: { uuid: claim.uuid, expires: claim.expires } });
    });

    test("a late copy of a claim leaves the renewed row as it is", async () => {
      const claim = claimWith({});
      await store().take(claim, terms(), forever);
      await store().renew({ name: claim.name, uuid: claim.uuid, expires: claim.expires + 1 }, forever);
      await store().take(claim, terms(), forever);
      expect((await read(claim.name))?.expires).toBe(claim.expires + 1);
    });

    test("a hint that somebody waits, and data, are those of one holder", async () => {
      const row = await plant({ expires: EARLIEST - 1, wanted: EARLIEST, data: { of: "the last holder" } });
      await store().take(claimWith({ name: row.name }), terms(), forever);
      expect(await read(row.name)).toMatchObject({ wanted: undefined, data: undefined });
    });
  });

  describe("taking with a fencing token", () => {
    const terms: Terms = { earliest: EARLIEST, kept: true };

    test("the first token of a name is one more than the seed", async () => {
      const claim = claimWith({ fenceSeed: 7_000 });
      expect(await store().take(claim, terms, forever)).toEqual({ kind: "granted", fence: 7_001n });
      expect(await read(claim.name)).toMatchObject({ uuid: claim.uuid, fence: 7_001n });
    });

    test("every further one is one more than the last, whatever the seed", async () => {
      for (const seed of [1, EARLIEST * 2]) {
        const row = await plant({ uuid: undefined, expires: 0, fence: 2n ** 80n });
        const claim = claimWith({ name: row.name, fenceSeed: seed, data: { a: 1 } });
        const fence = 2n ** 80n + 1n;
        expect(await store().take(claim, terms, forever)).toEqual({ kind: "granted", replaced: row, fence });
        const { fenceSeed: _, ...written } = claim;
        expect(await read(row.name)).toEqual({ ...NOTHING_ELSE, ...written, fence });
      }
    });

    test("the row of a plain holder that is gone gets a first one", async () => {
      const row = await plant({ expires: EARLIEST - 1 });
      const claim = claimWith({ name: row.name, fenceSeed: 8_000 });
      expect(await store().take(claim, terms, forever)).toMatchObject({ kind: "granted", fence: 8_001n });
    });

    test("the row of a holder that was watched is taken the same way", async () => {
      const row = await plant({ expires: EARLIEST + 1, fence: 5n });
      const unchanged = { uuid: "theirs", expires: EARLIEST + 1 };
      for (const data of [undefined, { a: 1 }]) {
        const claim = claimWith({ name: row.name, fenceSeed: 1, data });
        const outcome = await store().take(claim, { ...terms, unchanged }, forever);
        expect(outcome.kind).toBe(data === undefined ? "granted" : "held");
      }
      expect(await read(row.name)).toMatchObject({ fence: 6n });
    });

    test("a second copy draws no token, and the row that refuses it shows the first copy's", async () => {
      const claim = claimWith({ fenceSeed: 9_000 });
      await store().take(claim, terms, forever);
      const outcome = await store().take(claim, terms, forever);
      expect(outcome).toMatchObject({ kind: "held", row: { uuid: claim.uuid, fence: 9_001n } });
    });

    test("a claim that is refused draws none", async () => {
      const row = await plant({ fence: 5n });
      await store().take(claimWith({ name: row.name, fenceSeed: 1 }), terms, forever);
      expect(await read(row.name)).toEqual(row);
    });

    test("a claim of a plain mutex leaves the token in place", async () => {
      const row = await plant({ uuid: undefined, expires: 0, fence: 5n });
      const claim = claimWith({ name: row.name });
      expect(await store().take(claim, terms, forever)).toEqual({ kind: "granted", replaced: row });
      expect(await read(row.name)).toMatchObject({ uuid: claim.uuid, fence: 5n });
    });
  });

  describe("taking several at once", () => {
    const take = (claim: Claim, more: Partial<Terms> = {}): Take => ({
      claim,
      terms: { earliest: EARLIEST, kept: false, ...more },
    });

    test("all are granted where nobody has one of them, in whatever way each of them is free", async () => {
      const over = await plant({ expires: EARLIEST - 1 });
      const fenced = await plant({ uuid: undefined, expires: 0, fence: 3n });
      const ticked = await plant({ uuid: undefined, expires: 0, tick: 4 });
      const watched = await plant({ expires: EARLIEST + 1 });
      const unchanged = { uuid: "theirs", expires: EARLIEST + 1 };
      const takes = [
        take(claimWith({ data: { a: 1 } })),
        take(claimWith({ name: over.name })),
        take(claimWith({ name: fenced.name }), { kept: true }),
        take(claimWith({ name: ticked.name, data: { b: 2 } }), { kept: true, ticked: true }),
        take(claimWith({ name: watched.name }), { unchanged }),
      ];
      expect(await store().takeAll(takes, forever)).toEqual({ kind: "allGranted" });
      const remembered = [{}, {}, { fence: 3n }, { tick: 4 }, {}];
      for (const [index, { claim }] of takes.entries()) {
        expect(await read(claim.name)).toEqual({ ...NOTHING_ELSE, ...claim, ...remembered[index] });
      }
    });

    test("none is written where one of them is held, and the rows that refused are shown in their places", async () => {
      const held = await plant({});
      const kept = await plant({ uuid: undefined, expires: 0, fence: 3n });
      const free = claimWith({});
      const takes = [take(claimWith({ name: held.name })), take(free), take(claimWith({ name: kept.name }))];
      expect(await store().takeAll(takes, forever)).toEqual({ kind: "someHeld", rows: [held, undefined, kept] });
      expect(await read(free.name)).toBeUndefined();
      expect(await read(held.name)).toEqual(held);
      expect(await read(kept.name)).toEqual(kept);
    });

    test("a second copy is refused by the rows that the first one wrote, all of them", async () => {
      const takes = [take(claimWith({})), take(claimWith({}))];
      await store().takeAll(takes, forever);
      const rows = await Promise.all(takes.map(({ claim }) => read(claim.name)));
      expect(await store().takeAll(takes, forever)).toEqual({ kind: "someHeld", rows });
      expect(rows.map((row) => row?.uuid)).toEqual(takes.map(({ claim }) => claim.uuid));
    });

    test("a hundred are no more than one", async () => {
      const takes = Array.from({ length: 100 }, () => take(claimWith({})));
      expect(await store().takeAll(takes, forever)).toEqual({ kind: "allGranted" });
      expect((await read(takes[99]?.claim.name ?? ""))?.uuid).toBe(takes[99]?.claim.uuid);
    });

    test("an item of somebody else's is shown, and nothing is written", async () => {
      const name = randomUUID();
      await subject.plantForeign(name, { mark: { S: "their own" } });
      const free = claimWith({});
      const error = await store()
        .takeAll([take(free), take(claimWith({ name }))], forever)
        .catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(LockStoreError);
      expect(error).toMatchObject({ transient: false, message: expect.stringContaining('"mark":{"S":"their own"}') });
      expect(await read(free.name)).toBeUndefined();
    });

    test("what cannot be stored is refused, and nothing is written", async () => {
      const free = claimWith({});
      const takes = [take(free), take(claimWith({ data: { a: Number.NaN } }))];
      await expect(store().takeAll(takes, forever)).rejects.toMatchObject({ option: "data.a" });
      expect(await read(free.name)).toBeUndefined();
    });
  });

  describe("taking for a tick", () => {
    const terms: Terms = { earliest: EARLIEST, kept: true, ticked: true };

    test("a row without one gets it, and what else the row remembers stays", async () => {
      const row = await plant({ uuid: undefined, expires: 0, fence: 7n });
      const claim = claimWith({ name: row.name, tick: 42 });
      await store().take(claim, terms, forever);
      expect(await read(row.name)).toEqual({ ...NOTHING_ELSE, ...claim, fence: 7n });
    });

    test("a lock without a row is granted, and its release leaves the tick", async () => {
      const claim = claimWith({ tick: -5 });
      expect(await store().take(claim, { ...terms, earliest: 1 }, forever)).toMatchObject({ kind: "granted" });
      await store().release(claim.name, claim.uuid, { kept: true, ticked: true }, forever);
      expect(await read(claim.name)).toMatchObject({ uuid: undefined, expires: 0, tick: -5 });
    });

    test("a late copy of a claim is refused by the tick that the first one left, also long after the release", async () => {
      const claim = claimWith({ tick: 42 });
      await store().take(claim, terms, forever);
      await store().release(claim.name, claim.uuid, { kept: true }, forever);
      const free = await read(claim.name);
      expect(await store().take(claim, terms, forever)).toEqual({ kind: "held", row: free });
      const next = claimWith({ name: claim.name, tick: 43 });
      await store().take(next, terms, forever);
      await store().release(claim.name, next.uuid, { kept: true }, forever);
      expect(await store().take(claim, terms, forever)).toMatchObject({ kind: "held", row: { tick: 43 } });
    });

    test("plain use of the same name leaves the tick", async () => {
      const { name } = await plant({ uuid: undefined, expires: 0, tick: 4 });
      const claim = claimWith({ name });
      await store().take(claim, terms, forever);
      await store().renew({ name, uuid: claim.uuid, expires: claim.expires + 1, ticked: true }, forever);
      await store().release(name, claim.uuid, { kept: true }, forever);
      expect(await read(name)).toMatchObject({ uuid: undefined, tick: 4 });
    });
  });

  describe("renewing", () => {
    test.each<readonly [string, Partial<Row>, "applied" | "refused"]>([
      ["an earlier stamp is moved forward", { expires: 99 }, "applied"],
      ["the very stamp is refused, so that a copy shows", { expires: 100 }, "refused"],
      ["a later stamp is never moved back", { expires: 101 }, "refused"],
      ["another holder's row is refused", { uuid: "another", expires: 99 }, "refused"],
      ["a row without a holder is refused", { uuid: undefined, expires: 99 }, "refused"],
      ["a row that remembers something is renewed as well", { expires: 99, fence: 7n, tick: 8 }, "applied"],
    ])("%s", async (_case, differences, kind) => {
      const row = await plant({ uuid: "mine", data: { a: 1 }, wanted: 5, ...differences });
      const outcome = await store().renew({ name: row.name, uuid: "mine", expires: 100 }, forever);
      expect(outcome).toEqual(kind === "applied" ? { kind } : { kind, row, retried: false });
      expect(await read(row.name)).toEqual(kind === "applied" ? { ...row, expires: 100 } : row);
    });

    test("data replaces the data that was there", async () => {
      const row = await plant({ uuid: "mine", expires: 99, data: { a: 1, b: 2 } });
      await store().renew({ name: row.name, uuid: "mine", expires: 100, data: { a: 3 } }, forever);
      expect(await read(row.name)).toEqual({ ...row, expires: 100, data: { a: 3 } });
    });

    test("no row is made where there is none", async () => {
      const name = randomUUID();
      expect(await store().renew({ name, uuid: "mine", expires: 100 }, forever)).toEqual(GONE);
      expect(await read(name)).toBeUndefined();
    });
  });

  describe("correcting a stamp", () => {
    const to: Stamped = { uuid: "fresh", expires: 50 };

    test.each<readonly [string, Partial<Row>, "applied" | "refused"]>([
      ["the exact lease is replaced, backwards too", {}, "applied"],
      ["a lease that was renewed since is left alone", { expires: 101 }, "refused"],
      ["a lease with an earlier stamp is left alone", { expires: 99 }, "refused"],
      ["another holder's lease is left alone", { uuid: "another" }, "refused"],
      ["a row without a holder is left alone", { uuid: undefined }, "refused"],
    ])("%s", async (_case, differences, kind) => {
      const row = await plant({ uuid: "mine", expires: 100, ...differences });
      const outcome = await store().restamp(row.name, { uuid: "mine", expires: 100 }, to, forever);
      expect(outcome).toEqual(kind === "applied" ? { kind } : { kind, row, retried: false });
      expect(await read(row.name)).toEqual(kind === "applied" ? { ...row, ...to } : row);
    });

    test("no row is made where there is none", async () => {
      const name = randomUUID();
      expect(await store().restamp(name, { uuid: "mine", expires: 100 }, to, forever)).toEqual(GONE);
      expect(await read(name)).toBeUndefined();
    });
  });

  describe("reissuing", () => {
    const to: Stamped = { uuid: "fresh", expires: 100 };
    const reissue = (name: string, fenced: boolean) => store().reissue({ name, from: "mine", to, fenced }, forever);

    test.each<readonly [string, Partial<Row>, "applied" | "refused"]>([
      ["an earlier stamp is moved forward under the fresh uuid", { expires: 99 }, "applied"],
      ["the very stamp is refused", { expires: 100 }, "refused"],
      ["a later stamp is never moved back", { expires: 101 }, "refused"],
      ["another holder's row is left alone", { uuid: "another", expires: 99 }, "refused"],
      ["a row without a holder is left alone", { uuid: undefined, expires: 99 }, "refused"],
    ])("%s", async (_case, differences, kind) => {
      for (const fenced of [false, true]) {
        const row = await plant({ uuid: "mine", data: { a: 1 }, wanted: 5, fence: 7n, tick: 8, ...differences });
        const outcome = await reissue(row.name, fenced);
        const fence = fenced ? 8n : 7n;
        const applied = fenced ? { kind, fence } : { kind };
        expect(outcome).toEqual(kind === "applied" ? applied : { kind, row, retried: false });
        expect(await read(row.name)).toEqual(kind === "applied" ? { ...row, ...to, fence } : row);
      }
    });

    test("a second copy is refused by the row that the first one wrote", async () => {
      const { name } = await plant({ uuid: "mine", expires: 99, fence: 7n });
      await reissue(name, true);
      expect(await reissue(name, true)).toMatchObject({ kind: "refused", row: { ...to, fence: 8n } });
    });

    test("no row is made where there is none", async () => {
      const name = randomUUID();
      expect(await reissue(name, true)).toEqual(GONE);
      expect(await read(name)).toBeUndefined();
    });

    test("nothing that was written under the old uuid passes any more", async () => {
      const { name } = await plant({ uuid: "mine", expires: 99 });
      await reissue(name, false);
      expect(await store().renew({ name, uuid: "mine", expires: 200 }, forever)).toMatchObject({ kind: "refused" });
      expect(await store().release(name, "mine", { kept: false }, forever)).toMatchObject({ kind: "refused" });
      expect(await read(name)).toMatchObject(to);
    });
  });

  describe("guarded writes", () => {
    const guardOf = (row: Row, differences: Partial<Guard> = {}): Guard => ({
      name: row.name,
      uuid: "mine",
      after: 99,
      fence: undefined,
      ...differences,
    });
    const transact = (guard: Guard, token: string = randomUUID()) =>
      store().transact({ items: [], guard, token }, forever);

    test.each<readonly [string, Partial<Row>, Partial<Guard>, "committed" | "unguarded"]>([
      ["the holder's row, renewed since", {}, {}, "committed"],
      ["only its first stamp", { expires: 99 }, {}, "unguarded"],
      ["an earlier stamp", { expires: 98 }, {}, "unguarded"],
      ["another holder's", { uuid: "another" }, {}, "unguarded"],
      ["no holder's", { uuid: undefined }, {}, "unguarded"],
      ["the holder's, with a token that nobody asks for", { fence: 7n }, {}, "committed"],
      ["the holder's token", { fence: 7n }, { fence: 7n }, "committed"],
      ["another token", { fence: 8n }, { fence: 7n }, "unguarded"],
      ["no token", {}, { fence: 7n }, "unguarded"],
    ])("%s", async (_case, differences, guard, kind) => {
      const row = await plant({ uuid: "mine", expires: 100, ...differences });
      const outcome = await transact(guardOf(row, guard));
      expect(outcome).toEqual(kind === "committed" ? { kind } : { kind, row });
      expect(await read(row.name)).toEqual(row);
    });

    test("are refused where there is no row", async () => {
      expect(await transact(guardOf(rowWith({})))).toEqual({ kind: "unguarded", row: undefined });
    });

    test("a second copy of what was applied gets the same answer, whatever the row is by then", async () => {
      const row = await plant({ uuid: "mine", expires: 100 });
      const token = randomUUID();
      await transact(guardOf(row), token);
      await store().release(row.name, "mine", { kept: false }, forever);
      expect(await transact(guardOf(row), token)).toEqual({ kind: "committed" });
      expect(await transact(guardOf(row))).toEqual({ kind: "unguarded", row: undefined });
    });

    test("do not go along with a second action on the lock's row, and not with 100 items", async () => {
      const { name } = rowWith({});
      const guard = store().guard(guardOf(rowWith({ name })));
      const refused = (option: string) => expect.objectContaining({ name: "LockConfigError", option });
      expect(() => store().admitItems(name, [guard])).toThrow(refused("items.0"));
      expect(() => store().admitItems(`${name}2`, [guard])).not.toThrow();
      expect(() => store().admitItems(`${name}2`, Array(99).fill(guard))).not.toThrow();
      expect(() => store().admitItems(`${name}2`, Array(100).fill(guard))).toThrow(refused("items"));
    });

    test("the guard for a DocumentClient says the same in plain values", () => {
      const guard = guardOf(rowWith({}), { fence: 2n ** 80n });
      const { Key, ExpressionAttributeValues, ...check } = store().guard(guard).ConditionCheck ?? {};
      expect(store().documentGuard(guard).ConditionCheck).toEqual({
        ...check,
        Key: Object.fromEntries(Object.entries(Key ?? {}).map(([attribute, { S }]) => [attribute, S])),
        ExpressionAttributeValues: { ":uuid": "mine", ":format": 1, ":after": 99, ":fence": 2n ** 80n },
      });
      expect(Object.keys(ExpressionAttributeValues ?? {}).sort()).toEqual([":after", ":fence", ":format", ":uuid"]);
    });
  });

  describe("releasing", () => {
    test("the holder's row is removed, whatever its stamp", async () => {
      const { name } = await plant({ uuid: "mine" });
      expect(await store().release(name, "mine", { kept: false }, forever)).toEqual({ kind: "applied" });
      expect(await read(name)).toBeUndefined();
    });

    test("a kept row stays, free, with what it remembers", async () => {
      const row = await plant({ uuid: "mine", fence: 41n, tick: 42, wanted: 5 });
      expect(await store().release(row.name, "mine", { kept: true }, forever)).toEqual({ kind: "applied" });
      expect(await read(row.name)).toEqual({ ...row, uuid: undefined, expires: 0, wanted: undefined });
      const terms: Terms = { earliest: 1, kept: true, ticked: true };
      const again = await store().take(claimWith({ name: row.name }), terms, forever);
      expect(again).toMatchObject({ kind: "granted", replaced: { uuid: undefined, expires: 0 } });
    });

    test.each([false, true])("a parked row stays taken until the end of its hold, with kept: %s", async (kept) => {
      const row = await plant({ uuid: "mine", expires: EARLIEST + 30_000, wanted: 5, ...(kept ? { tick: 8 } : {}) });
      const parked = { expires: EARLIEST + 7, ttlMs: 7 };
      expect(await store().release(row.name, "mine", { kept, parked }, forever)).toEqual({ kind: "applied" });
      const expected = { ...row, ...parked, uuid: undefined, wanted: undefined };
      expect(await read(row.name)).toEqual(expected);
      const take = (earliest: number) =>
        store().take(claimWith({ name: row.name }), { earliest, kept, ticked: kept }, forever);
      expect(await take(EARLIEST + 7)).toEqual({ kind: "held", row: expected });
      expect(await take(EARLIEST + 8)).toMatchObject({ kind: "granted" });
    });

    test("nothing that a holder sent changes the row that it has parked", async () => {
      const claim = claimWith({});
      const { name, uuid } = claim;
      await store().take(claim, { earliest: EARLIEST, kept: false }, forever);
      const parked = { expires: EARLIEST + 7, ttlMs: 7 };
      await store().release(name, uuid, { kept: false, parked }, forever);
      const row = await read(name);
      const copies: readonly (() => Promise<unknown>)[] = [
        () => store().take(claim, { earliest: EARLIEST, kept: false }, forever),
        () => store().renew({ name, uuid, expires: claim.expires + 1 }, forever),
        () => store().restamp(name, claim, { uuid: "fresh", expires: claim.expires }, forever),
        () => store().release(name, uuid, { kept: false, parked: { expires: EARLIEST + 9, ttlMs: 9 } }, forever),
        () => store().release(name, uuid, { kept: false }, forever),
        () => store().release(name, uuid, { kept: true }, forever),
        () => store().want(name, uuid, EARLIEST + 9, forever),
      ];
      for (const copy of copies) {
        expect(await copy()).toMatchObject({ row });
        expect(await read(name)).toEqual(row);
      }
    });

    test("another holder's row is not parked", async () => {
      const row = await plant({ uuid: "another" });
      const parked = { expires: EARLIEST + 7, ttlMs: 7 };
      const outcome = await store().release(row.name, "mine", { kept: false, parked }, forever);
      expect(outcome).toEqual({ kind: "refused", row, retried: false });
      expect(await read(row.name)).toEqual(row);
    });

    test.each([false, true])("another holder's row is left alone, with kept: %s", async (kept) => {
      const row = await plant({ uuid: "another" });
      const outcome = await store().release(row.name, "mine", { kept }, forever);
      expect(outcome).toEqual({ kind: "refused", row, retried: false });
      expect(await read(row.name)).toEqual(row);
    });

    test.each([false, true])("a row that is free already is left alone, with kept: %s", async (kept) => {
      const row = await plant({ uuid: undefined, expires: 0, fence: 1n });
      expect(await store().release(row.name, "mine", { kept }, forever)).toMatchObject({ kind: "refused", row });
      expect(await read(row.name)).toEqual(row);
    });

    test.each([false, true])("no row is made where there is none, with kept: %s", async (kept) => {
      const name = randomUUID();
      expect(await store().release(name, "mine", { kept }, forever)).toEqual(GONE);
      expect(await read(name)).toBeUndefined();
    });
  });

  describe("saying that somebody waits", () => {
    test("marks the row of the holder that was seen, and changes nothing else", async () => {
      const row = await plant({ uuid: "theirs", expires: 100, fence: 1n, wanted: 5 });
      expect(await store().want(row.name, "theirs", 900, forever)).toEqual({ kind: "applied" });
      expect(await read(row.name)).toEqual({ ...row, wanted: 900 });
    });

    test.each<readonly [string, Partial<Row>]>([
      ["the row of another holder", { uuid: "another" }],
      ["a row without a holder", { uuid: undefined }],
    ])("leaves %s alone", async (_case, differences) => {
      const row = await plant(differences);
      const outcome = await store().want(row.name, "theirs", 900, forever);
      expect(outcome).toEqual({ kind: "refused", row, retried: false });
      expect(await read(row.name)).toEqual(row);
    });

    test("makes no row where there is none", async () => {
      const name = randomUUID();
      expect(await store().want(name, "theirs", 900, forever)).toEqual(GONE);
      expect(await read(name)).toBeUndefined();
    });
  });

  describe("taking a holder's uuid away", () => {
    test("leaves the rest, and nobody enters before the stamp", async () => {
      const row = await plant({ uuid: "theirs", expires: EARLIEST, data: { a: 1 }, fence: 41n, tick: 42 });
      expect(await store().force(row.name, "theirs", { now: false }, forever)).toEqual({ kind: "applied" });
      expect(await read(row.name)).toEqual({ ...row, uuid: undefined });
      const take = (earliest: number) =>
        store().take(claimWith({ name: row.name }), { earliest, kept: true, ticked: true }, forever);
      expect(await take(EARLIEST)).toMatchObject({ kind: "held" });
      expect(await take(EARLIEST + 1)).toMatchObject({ kind: "granted" });
    });

    test.each<readonly [string, Partial<Row>]>([
      ["remembers nothing", {}],
      ["is kept", { fence: 41n, tick: 42 }],
    ])("now: a row that %s is free at once, on any clock", async (_case, differences) => {
      const row = await plant({ uuid: "theirs", expires: EARLIEST, wanted: 5, ...differences });
      expect(await store().force(row.name, "theirs", { now: true }, forever)).toEqual({ kind: "applied" });
      expect(await read(row.name)).toEqual({ ...row, uuid: undefined, expires: 0, wanted: undefined });
      const kept = row.fence !== undefined;
      const terms = { earliest: 1, kept, ticked: kept };
      expect(await store().take(claimWith({ name: row.name }), terms, forever)).toMatchObject({ kind: "granted" });
    });

    test.each([false, true])("nobody else's row is touched, with now: %s", async (now) => {
      for (const differences of [{ uuid: "another" }, { uuid: undefined }, { uuid: undefined, expires: 0, tick: 4 }]) {
        const row = await plant(differences);
        const outcome = await store().force(row.name, "theirs", { now }, forever);
        expect(outcome).toEqual({ kind: "refused", row, retried: false });
        expect(await read(row.name)).toEqual(row);
      }
      const name = randomUUID();
      expect(await store().force(name, "theirs", { now }, forever)).toEqual(GONE);
      expect(await read(name)).toBeUndefined();
    });

    test.each([false, true])("a late copy leaves the next holder alone, with now: %s", async (now) => {
      const row = await plant({ uuid: "theirs", expires: EARLIEST - 1 });
      await store().force(row.name, "theirs", { now }, forever);
      const claim = claimWith({ name: row.name });
      await store().take(claim, { earliest: EARLIEST, kept: false }, forever);
      expect(await store().force(row.name, "theirs", { now }, forever)).toMatchObject({ kind: "refused" });
      expect(await read(row.name)).toMatchObject({ uuid: claim.uuid, expires: claim.expires });
    });
  });

  describe("listing", () => {
    async function listed(prefix: string): Promise<Row[]> {
      const rows: Row[] = [];
      let page = await store().list(prefix, undefined, forever);
      for (;;) {
        rows.push(...page.rows);
        if (page.next === undefined) return rows.sort((one, other) => (one.name < other.name ? -1 : 1));
        page = await store().list(prefix, page.next, forever);
      }
    }

    test("gives each row under the prefix once, whatever its state, and no other", async () => {
      const prefix = randomUUID();
      const rows = [
        await plant({ name: `${prefix}-1`, uuid: "theirs", data: { a: 1 } }),
        await plant({ name: `${prefix}-2`, uuid: undefined, expires: 100 }),
        await plant({ name: `${prefix}-3`, uuid: undefined, expires: 0, fence: 3n, tick: 4 }),
        await plant({ name: `${prefix}-4`, expires: 1 }),
      ];
      await plant({ name: `other-${prefix}` });
      expect(await listed(`${prefix}-`)).toEqual(rows);
      expect(await listed(`${prefix}-2`)).toEqual([rows[1]]);
      expect(await listed(`${prefix}-9`)).toEqual([]);
      expect(await listed("")).toEqual(expect.arrayContaining(rows));
    });

    test.each(FOREIGN)("leaves out an item of somebody else's %s", async (_case, attributes) => {
      const prefix = randomUUID();
      await subject.plantForeign(`${prefix}-1`, attributes);
      const row = await plant({ name: `${prefix}-2` });
      expect(await listed(prefix)).toEqual([row]);
    });
  });

  describe("an item of somebody else's", () => {
    test.each(FOREIGN)("%s is shown, and no operation touches it", async (_case, attributes) => {
      const name = randomUUID();
      await subject.plantForeign(name, attributes);
      const claim = claimWith({ name });
      const seen = { uuid: "theirs", expires: 5 };
      const operations: readonly (() => Promise<unknown>)[] = [
        () => store().take(claim, { earliest: EARLIEST, kept: false }, forever),
        () => store().take(claim, { earliest: EARLIEST, kept: true }, forever),
        () => store().take(claim, { earliest: EARLIEST, kept: false, unchanged: seen }, forever),
        () => store().take(claim, { earliest: EARLIEST, kept: true, unchanged: seen }, forever),
        () => store().read(name, CONSISTENT, forever),
        () => store().renew({ name, uuid: "ours", expires: EARLIEST }, forever),
        () => store().restamp(name, { uuid: "ours", expires: 5 }, { uuid: "fresh", expires: 6 }, forever),
        () => store().release(name, "ours", { kept: false }, forever),
        () => store().release(name, "ours", { kept: true }, forever),
        () => store().want(name, "ours", 900, forever),
        () => store().reissue({ name, from: "ours", to: { uuid: "fresh", expires: 9 }, fenced: true }, forever),
        () => store().release(name, "ours", { kept: false, parked: { expires: EARLIEST, ttlMs: 5 } }, forever),
        () => store().take({ ...claim, tick: 9 }, { earliest: EARLIEST, kept: true, ticked: true }, forever),
        () => store().force(name, "ours", { now: false }, forever),
        () => store().force(name, "ours", { now: true }, forever),
      ];
      for (const operation of operations) {
        const error = await operation().catch((thrown: unknown) => thrown);
        expect(error).toBeInstanceOf(LockStoreError);
        expect(error).toMatchObject({ transient: false, message: expect.stringContaining('"mark":{"S":"their own"}') });
        expect(await subject.foreign(name)).toEqual(attributes);
      }
    });
  });

  describe("the caller's data", () => {
    test("what DynamoDB can store comes back as it was", async () => {
      const data = {
        text: "ünïcode 🔒",
        empty: "",
        whole: Number.MAX_SAFE_INTEGER,
        fraction: -0.125,
        small: 1e-130,
        big: 12345678901234567890123456789012345678n,
        yes: true,
        nothing: null,
        bytes: new Uint8Array([0, 255]),
        list: [1, ["two"], { three: 3 }],
        map: { name: "a reserved word", "with.dot": 1 },
        words: new Set(["a", ""]),
        numbers: new Set([1, 2.5]),
      };
      const claim = claimWith({ data });
      store().admit(data);
      await store().take(claim, { earliest: 1, kept: false }, forever);
      expect((await read(claim.name))?.data).toEqual(data);
    });

    test.each(UNSTORABLE)("%s is refused by its path, and nothing is written", async (_case, data, path) => {
      const row = await plant({ uuid: "mine", expires: 99 });
      const claim = claimWith({ data });
      const refused = { name: "LockConfigError", code: "LOCK_CONFIG", option: path };
      expect(() => store().admit(data)).toThrow(expect.objectContaining(refused));
      expect(() => store().admit(data)).toThrow(LockConfigError);
      for (const kept of [false, true]) {
        await expect(store().take(claim, { earliest: 1, kept }, forever)).rejects.toMatchObject(refused);
      }
      expect(await read(claim.name)).toBeUndefined();
      const renewal = { name: row.name, uuid: "mine", expires: 100, data };
      await expect(store().renew(renewal, forever)).rejects.toMatchObject(refused);
      expect(await read(row.name)).toEqual(row);
    });

    test("no data is no trouble", () => {
      expect(() => store().admit(undefined)).not.toThrow();
      expect(() => store().admit({})).not.toThrow();
    });
  });

  test("a request that was given up beforehand changes nothing", async () => {
    const claim = claimWith({});
    const error = await store()
      .take(claim, { earliest: 1, kept: false }, AbortSignal.abort())
      .catch((e: unknown) => e);
    expect(error).toBeInstanceOf(LockStoreError);
    expect(error).toMatchObject({ transient: true, answered: false });
    expect(await read(claim.name)).toBeUndefined();
  });
});
