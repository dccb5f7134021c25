import { randomUUID } from "node:crypto";
import { describe, expect, test } from "@jest/globals";
import { LockStoreError } from "../../../lib/errors.js";
import { type Address, lockAt, placeAt } from "../../../lib/protocol/addresses.js";
import { numberOfMark } from "../../../lib/protocol/mark.js";
import type { Memory, Row } from "../../../lib/protocol/row.js";
import { purgeAt } from "../../../lib/protocol/rules.js";
import type { Check, RowAfterRelease, Take, TokenDraw, Write } from "../../../lib/protocol/writes.js";
import {
  EARLIEST,
  FOREIGN,
  itemOf,
  NOT_OURS,
  respects,
  rowOf,
  rowWith,
  TAKES,
  takeWith,
  UNSTORABLE,
} from "../../support/store-cases.js";
import { ALL_SUBJECTS, useSubject } from "../../support/store-subjects.js";
import {
  APPLIED,
  COUNTS,
  FREE,
  GONE,
  MEMORIES,
  REMEMBERED,
  REMEMBERS,
  refusedBy,
  reissueOf,
  removalOf,
  renewalOf,
  transferOf,
  vacateOf,
  wantOf,
} from "../../support/write-cases.js";

const forever = new AbortController().signal;

describe.each(ALL_SUBJECTS)("a store %s", (where, subjectOf) => {
  const { itemAt, plant, plantItem, read, store, write } = useSubject(subjectOf);

  describe.each(MEMORIES)("taking a row that is believed to remember %s", (remembers) => {
    const take = (differences: Partial<Take> = {}) => takeWith({ remembers, ...differences });

    test("a lock without a row is granted, and the row is the take", async () => {
      const taking = take({ data: { job: "report" }, knowledge: { earliest: 1 } });
      expect(await write(taking)).toEqual(APPLIED);
      expect(await read(taking.at)).toEqual(rowOf(taking));
    });

    test("a row is taken if, and only if, no holder is behind it and nothing is forgotten", async () => {
      for (const { row: differences, unchanged, tick, free } of TAKES) {
        // A take for a tick respects one, whatever it believes.
        const respected = tick === undefined ? remembers : "tick";
        const row = await plant(differences);
        const taking = take({ at: row, tick, knowledge: { earliest: EARLIEST, unchanged } });
        const outcome = await write(taking);
        const isFree = respects(respected, free);
        const expected = isFree ? { ...APPLIED, replaced: row } : refusedBy(row);
        expect({ differences, unchanged, tick, outcome }).toEqual({ differences, unchanged, tick, outcome: expected });
        const kept = { fence: row.fence, tick: tick ?? row.tick };
        expect(await read(row)).toEqual(isFree ? { ...rowOf({ ...taking, at: lockAt(row.name) }), ...kept } : row);
      }
    });

    test("without a clock to trust, a lease that is long over is not free", async () => {
      const row = await plant({ expires: 1 });
      expect(await write(take({ at: row, knowledge: { earliest: 1 } }))).toEqual(refusedBy(row));
    });

    test("a second copy is refused by the row that the first one wrote", async () => {
      const taking = take();
      await write(taking);
      expect(await write(taking)).toEqual(refusedBy(rowOf(taking)));
    });

    test("a late copy leaves the renewed row as it is", async () => {
      const taking = take();
      await write(taking);
      await write(renewalOf(taking.at, taking.uuid, taking.expires + 1));
      await write(taking);
      expect((await read(taking.at))?.expires).toBe(taking.expires + 1);
    });

    test("a hint that somebody waits, and data, are those of one holder", async () => {
      const row = await plant({ expires: EARLIEST - 1, wanted: EARLIEST, data: { of: "the last holder" } });
      await write(take({ at: row }));
      expect(await read(row)).toMatchObject({ wanted: undefined, data: undefined });
    });

    test("a mark is carried on where its process knows of it", async () => {
      const row = await plant({ expires: EARLIEST - 1, wanted: EARLIEST, ...REMEMBERS[remembers] });
      const wanted = numberOfMark({ until: EARLIEST + 5, needMs: 750 });
      const taking = take({ at: row, remembers, wanted });
      expect(await write(taking)).toEqual({ ...APPLIED, replaced: row });
      expect(await read(row)).toMatchObject({ uuid: taking.uuid, wanted });
    });
  });

  describe("taking with a fencing token", () => {
    const take = (differences: Partial<Take>) => takeWith({ token: COUNTS, remembers: "fence", ...differences });

    test("the first token of a name is one more than the seed, whatever the row is believed to remember", async () => {
      for (const remembers of MEMORIES) {
        const taking = take({ remembers });
        expect(await write(taking)).toEqual({ ...APPLIED, drawn: 7_001n });
        expect(await read(taking.at)).toEqual({ ...rowOf(taking), fence: 7_001n });
      }
    });

    test("a second copy draws no token, and the row that refuses it shows the first copy's", async () => {
      const taking = take({});
      await write(taking);
      expect(await write(taking)).toEqual(refusedBy({ ...rowOf(taking), fence: 7_001n }));
    });

    test.each([["in a text"], [true], [{ a: 1 }]])(
      "a token that is no number is never counted up: %p",
      async (fence) => {
        const row = rowWith({ expires: EARLIEST - 1 });
        const item = { ...itemOf(row), fence };
        await plantItem(row, item);
        for (const remembers of MEMORIES) {
          await expect(write(take({ at: row, remembers }))).rejects.toThrow(LockStoreError);
        }
        expect(await itemAt(row)).toEqual(item);
      },
    );
  });

  describe("a token and the table's time", () => {
    /** The writes that draw, of a row that they may change. */
    const draws: readonly (readonly [string, Partial<Row>, (at: Address, token: TokenDraw) => Write])[] = [
      ["a take", { uuid: undefined, expires: 0 }, (at, token) => takeWith({ at, token, remembers: "fence" })],
      ["a take for a tick", { uuid: undefined, expires: 0, tick: 4 }, (at, token) => takeWith({ at, token, tick: 5 })],
      [
        "a take of an unchanged lease",
        { expires: EARLIEST + 1 },
        (at, token) =>
          takeWith({ at, token, knowledge: { earliest: 1, unchanged: { uuid: "theirs", expires: EARLIEST + 1 } } }),
      ],
      ["a reissue", { uuid: "mine", expires: 99 }, (at, token) => reissueOf(at, { token, remembers: "fence" })],
      ["a hand-off", { uuid: "mine", expires: 99 }, (at, token) => transferOf(at, { token, after: 98 })],
      ["a resumption", { uuid: "mine", expires: 99 }, (at, token) => transferOf(at, { token })],
    ];
    /** The last token of a row, and the one that is drawn at the time 7 000. */
    const tokens: readonly (readonly [bigint, bigint])[] = [
      [0n, 7_000n],
      [41n, 7_000n],
      [6_999n, 7_000n],
      [7_000n, 7_001n],
      [7_001n, 7_002n],
      [2n ** 80n, 2n ** 80n + 1n],
    ];
    const time = { least: 7_000, seed: 8_000 };

    test.each(draws)(
      "%s draws a greater one that is not behind it, in whichever form it is sent first",
      async (...args) => {
        const [, differences, writeOf] = args;
        for (const isBehind of [true, false]) {
          for (const [fence, drawn] of tokens) {
            const row = await plant({ ...differences, fence });
            const value = writeOf(lockAt(row.name), { ...time, isBehind });
            expect(await write(value)).toMatchObject({ kind: "applied", drawn });
            expect(await read(row)).toMatchObject({ uuid: "uuid" in value && value.uuid, fence: drawn });
            expect(await write(value)).toMatchObject({ kind: "refused", row: { fence: drawn } });
          }
        }
      },
    );

    test("the first token is one more than the latest time, where there is no row, and where the row has none", async () => {
      for (const isBehind of [true, false]) {
        const token = { ...time, isBehind };
        const first = takeWith({ token });
        expect(await write(first)).toEqual({ ...APPLIED, drawn: 8_001n });
        expect(await read(first.at)).toEqual({ ...rowOf(first), fence: 8_001n });
        for (const tick of [undefined, 4]) {
          const row = await plant({ uuid: undefined, expires: 0, tick });
          const taking = takeWith({ at: lockAt(row.name), token, remembers: "tick" });
          expect(await write(taking)).toEqual({ kind: "applied", replaced: row, drawn: 8_001n });
          expect(await read(row)).toMatchObject({ uuid: taking.uuid, fence: 8_001n });
        }
      }
    });

    test("a take that is too late when its first form is refused is not sent in the other", async () => {
      for (const [isBehind, fence] of [
        [false, 41n],
        [true, 7_001n],
      ] as const) {
        const row = await plant({ uuid: undefined, expires: 0, fence });
        const taking = takeWith({ at: lockAt(row.name), token: { ...time, isBehind }, remembers: "fence" });
        const outcome = await store().write(taking, forever, () => false);
        expect(outcome).toMatchObject({ kind: "refused", row });
        expect(await read(row)).toEqual(row);
      }
    });

    test("a row that may not be written refuses both forms, and stays", async () => {
      for (const isBehind of [true, false]) {
        for (const fence of [41n, 7_000n]) {
          const row = await plant({ fence });
          const token = { ...time, isBehind };
          for (const value of [
            takeWith({ at: lockAt(row.name), token, remembers: "fence" }),
            reissueOf(row, { token }),
            transferOf(row, { token }),
          ])
            expect(await write(value)).toEqual(refusedBy(row));
          expect(await read(row)).toEqual(row);
        }
      }
    });
  });

  describe("taking several at once", () => {
    test("all are granted where nobody has one of them, in whatever way each of them is free", async () => {
      const over = await plant({ expires: EARLIEST - 1 });
      const fenced = await plant({ uuid: undefined, expires: 0, fence: 3n });
      const ticked = await plant({ uuid: undefined, expires: 0, tick: 4 });
      const watched = await plant({ expires: EARLIEST + 1 });
      const unchanged = { uuid: "theirs", expires: EARLIEST + 1 };
      const takes = [
        takeWith({ data: { a: 1 } }),
        takeWith({ at: lockAt(over.name) }),
        takeWith({ at: lockAt(fenced.name), remembers: "fence" }),
        takeWith({ at: lockAt(ticked.name), data: { b: 2 }, remembers: "tick" }),
        takeWith({ at: lockAt(watched.name), knowledge: { earliest: EARLIEST, unchanged } }),
      ];
      expect(await store().writeAll(takes, forever)).toEqual({ kind: "applied" });
      const remembered = [{}, {}, { fence: 3n }, { tick: 4 }, {}];
      for (const [index, taking] of takes.entries()) {
        expect(await read(taking.at)).toEqual({ ...rowOf(taking), ...remembered[index] });
      }
    });

    test("none is written where one of them is held, and the rows that refused are shown in their places", async () => {
      const held = await plant({});
      const kept = await plant({ uuid: undefined, expires: 0, fence: 3n });
      const free = takeWith({});
      const takes = [takeWith({ at: held }), free, takeWith({ at: kept })];
      expect(await store().writeAll(takes, forever)).toEqual({ kind: "refused", rows: [held, undefined, kept] });
      expect(await read(free.at)).toBeUndefined();
      expect(await read(held)).toEqual(held);
      expect(await read(kept)).toEqual(kept);
    });

    test("a second copy is refused by the rows that the first one wrote, all of them", async () => {
      const takes = [takeWith({}), takeWith({})];
      await store().writeAll(takes, forever);
      expect(await store().writeAll(takes, forever)).toEqual({ kind: "refused", rows: takes.map(rowOf) });
    });

    test("an item of somebody else's is shown, and nothing is written", async () => {
      const at = lockAt(randomUUID());
      await plantItem(at, { mark: "their own" });
      const free = takeWith({});
      await expect(store().writeAll([free, takeWith({ at })], forever)).rejects.toMatchObject(NOT_OURS);
      expect(await read(free.at)).toBeUndefined();
    });

    test("what cannot be stored is refused, and nothing is written", async () => {
      const free = takeWith({});
      const takes = [free, takeWith({ data: { a: Number.NaN } })];
      await expect(store().writeAll(takes, forever)).rejects.toMatchObject({ option: "data.a" });
      expect(await read(free.at)).toBeUndefined();
    });
  });

  describe("taking for a tick", () => {
    const take = (differences: Partial<Take>) => takeWith({ tick: 42, remembers: "tick", ...differences });

    test("a row without one gets it, and what else the row remembers stays", async () => {
      const row = await plant({ uuid: undefined, expires: 0, fence: 7n });
      const taking = take({ at: lockAt(row.name) });
      await write(taking);
      expect(await read(row)).toEqual({ ...rowOf(taking), fence: 7n });
    });

    test("a late copy is refused by the tick that the first one left, also long after the release", async () => {
      const taking = take({});
      await write(taking);
      await write(vacateOf(taking.at, taking.uuid, FREE, { remembers: "tick" }));
      expect(await write(taking)).toEqual(refusedBy(await read(taking.at)));
      const next = take({ at: taking.at, tick: 43 });
      await write(next);
      await write(vacateOf(next.at, next.uuid, FREE, { remembers: "tick" }));
      expect(await write(taking)).toMatchObject({ kind: "refused", row: { tick: 43 } });
    });

    test("a row with a tick has no purge date, from its first take on; any other has one, moved by each stamp", async () => {
      for (const tick of [undefined, 42]) {
        const remembers: Memory = tick === undefined ? "nothing" : "tick";
        const { at, uuid, expires, ...taking } = takeWith({ tick });
        await plantItem(at, { ...itemOf(rowWith({ expires: 1 })), purge: 5 });
        const writes: readonly (readonly [Write, number])[] = [
          [{ at, uuid, expires, ...taking }, expires],
          [renewalOf(at, uuid, expires + 5_000, { remembers }), expires + 5_000],
          [reissueOf(at, { from: uuid, expires: expires + 9_000, remembers }), expires + 9_000],
          [transferOf(at, { from: "fresh", uuid: "next", expires: 80_000, remembers }), 80_000],
          [vacateOf(at, "next", { kind: "held", expires: 70_000, ttlMs: 7 }, { remembers }), 70_000],
        ];
        for (const [value, stamp] of writes) {
          expect(await write(value)).toMatchObject({ kind: "applied" });
          expect((await itemAt(at))?.purge).toBe(tick === undefined ? purgeAt(stamp) : undefined);
        }
      }
    });
  });

  describe("renewing", () => {
    test.each<readonly [string, Partial<Row>, "applied" | "refused"]>([
      ["an earlier stamp is moved forward", { expires: 99 }, "applied"],
      ["the very stamp is refused, so that a copy shows", { expires: 100 }, "refused"],
      ["a later stamp is never moved back", { expires: 101 }, "refused"],
      ["another holder's row is refused", { uuid: "another", expires: 99 }, "refused"],
      ["a row without a holder is refused", { uuid: undefined, expires: 99 }, "refused"],
      ["a row that remembers something is renewed as well", { expires: 99, ...REMEMBERED }, "applied"],
    ])("%s", async (_case, differences, kind) => {
      const row = await plant({ uuid: "mine", data: { a: 1 }, wanted: 5, ...differences });
      const outcome = await write(renewalOf(row, "mine", 100, { remembers: "tick" }));
      // Its mark comes along.
      expect(outcome).toEqual(kind === "applied" ? { ...APPLIED, replaced: row } : refusedBy(row));
      expect(await read(row)).toEqual(kind === "applied" ? { ...row, expires: 100 } : row);
    });

    test("data replaces the data that was there", async () => {
      const row = await plant({ uuid: "mine", expires: 99, data: { a: 1, b: 2 } });
      await write(renewalOf(row, "mine", 100, { data: { a: 3 } }));
      expect(await read(row)).toEqual({ ...row, expires: 100, data: { a: 3 } });
    });

    test("no row is made where there is none", async () => {
      const at = lockAt(randomUUID());
      expect(await write(renewalOf(at, "mine", 100))).toEqual(GONE);
      expect(await read(at)).toBeUndefined();
    });
  });

  describe("reissuing", () => {
    test.each<readonly [string, Partial<Row>, "applied" | "refused"]>([
      ["an earlier stamp is moved forward under the fresh uuid", { expires: 99 }, "applied"],
      ["the very stamp is refused", { expires: 100 }, "refused"],
      ["a later stamp is never moved back", { expires: 101 }, "refused"],
      ["another holder's row is left alone", { uuid: "another", expires: 99 }, "refused"],
      ["a row without a holder is left alone", { uuid: undefined, expires: 99 }, "refused"],
    ])("%s", async (_case, differences, kind) => {
      for (const fenced of [false, true]) {
        const row = await plant({ uuid: "mine", data: { a: 1 }, wanted: 5, ...REMEMBERED, ...differences });
        const outcome = await write(reissueOf(row, { token: fenced ? COUNTS : undefined, remembers: "tick" }));
        expect(outcome).toEqual(kind === "applied" ? { ...APPLIED, drawn: fenced ? 42n : undefined } : refusedBy(row));
        const fresh = { uuid: "fresh", expires: 100, fence: fenced ? 42n : 41n };
        expect(await read(row)).toEqual(kind === "applied" ? { ...row, ...fresh } : row);
      }
    });

    test("a second copy is refused by the row that the first one wrote", async () => {
      const row = await plant({ uuid: "mine", expires: 99, fence: 7n });
      const reissue = reissueOf(row, { token: COUNTS, remembers: "fence" });
      await write(reissue);
      expect(await write(reissue)).toEqual(refusedBy({ ...row, uuid: "fresh", expires: 100, fence: 8n }));
    });

    test("no row is made where there is none", async () => {
      const at = lockAt(randomUUID());
      for (const fenced of [false, true])
        expect(await write(reissueOf(at, { token: fenced ? COUNTS : undefined }))).toEqual(GONE);
      expect(await read(at)).toBeUndefined();
    });

    test("nothing that was written under the old uuid passes any more", async () => {
      const row = await plant({ uuid: "mine", expires: 99 });
      await write(reissueOf(row));
      expect(await write(renewalOf(row, "mine", 200))).toMatchObject({ kind: "refused" });
      expect(await write(vacateOf(row, "mine", FREE))).toMatchObject({ kind: "refused" });
      expect(await read(row)).toEqual({ ...row, uuid: "fresh", expires: 100 });
    });
  });

  describe("guarded writes", () => {
    const guardOf = (at: Address, differences: Partial<Check> = {}): Check => ({
      kind: "check",
      at,
      uuid: "mine",
      after: 99,
      fence: undefined,
      ...differences,
    });
    const transact = (guard: Check, token: string = randomUUID()) =>
      store().transact({ items: [], guard, token }, forever);

    test.each<readonly [string, Partial<Row>, Partial<Check>, "committed" | "unguarded"]>([
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
      expect(await read(row)).toEqual(row);
    });

    test("are refused where there is no row", async () => {
      expect(await transact(guardOf(rowWith({})))).toEqual({ kind: "unguarded", row: undefined });
    });

    test("a second copy of what was applied gets the same answer, whatever the row is by then", async () => {
      const row = await plant({ uuid: "mine", expires: 100 });
      const token = randomUUID();
      await transact(guardOf(row), token);
      await write(vacateOf(row, "mine", FREE));
      expect(await transact(guardOf(row), token)).toEqual({ kind: "committed" });
      expect(await transact(guardOf(row))).toEqual({ kind: "unguarded", row: undefined });
    });

    test("the check alone is refused by the same rows, and changes nothing", async () => {
      const row = await plant({ uuid: "mine", expires: 100 });
      expect(await write(guardOf(row))).toEqual(APPLIED);
      expect(await write(guardOf(row, { after: 100 }))).toEqual(refusedBy(row));
      expect(await read(row)).toEqual(row);
      const nowhere = lockAt(randomUUID());
      expect(await write(guardOf(nowhere))).toEqual(GONE);
      expect(await read(nowhere)).toBeUndefined();
    });

    test("do not go along with a second action on the guarded row, and not with 100 items", async () => {
      const at = lockAt(randomUUID());
      const other = lockAt(`${at.name}2`);
      const guard = store().guard(guardOf(at));
      const refused = (option: string) => expect.objectContaining({ name: "LockConfigError", option });
      expect(() => store().admitItems(at, [guard])).toThrow(refused("items.0"));
      expect(() => store().admitItems(other, [guard])).not.toThrow();
      if (where !== "in a table without one")
        expect(() => store().admitItems(placeAt(at.name, 1n), [guard])).not.toThrow();
      expect(() => store().admitItems(other, Array(99).fill(guard))).not.toThrow();
      expect(() => store().admitItems(other, Array(100).fill(guard))).toThrow(refused("items"));
    });

    test("the guard for a DocumentClient says the same in plain values", () => {
      const guard = guardOf(lockAt(randomUUID()), { fence: 2n ** 80n });
      const { Key, ExpressionAttributeValues, ...check } = store().guard(guard).ConditionCheck ?? {};
      expect(store().documentGuard(guard).ConditionCheck).toEqual({
        ...check,
        Key: Object.fromEntries(Object.entries(Key ?? {}).map(([attribute, { S }]) => [attribute, S])),
        ExpressionAttributeValues: { ":if_uuid": "mine", ":format": 1, ":if_after": 99, ":if_fence": 2n ** 80n },
      });
      expect(Object.keys(ExpressionAttributeValues ?? {}).sort()).toEqual([
        ":format",
        ":if_after",
        ":if_fence",
        ":if_uuid",
      ]);
    });
  });

  describe("releasing", () => {
    const HELD: RowAfterRelease = { kind: "held", expires: EARLIEST + 7, ttlMs: 7 };
    const ALL: readonly RowAfterRelease[] = [FREE, { kind: "kept" }, { kind: "untilExpires" }, HELD];
    const EACH = ALL.flatMap((leaves) => MEMORIES.map((remembers) => ({ leaves, remembers })));

    test("the holder's row is removed, whatever its stamp", async () => {
      const row = await plant({ uuid: "mine" });
      expect(await write(vacateOf(row, "mine", FREE))).toEqual(APPLIED);
      expect(await itemAt(row)).toBeUndefined();
    });

    test.each<readonly [string, Memory, Partial<Row>]>([
      ["both", "tick", REMEMBERED],
      ["a fence", "fence", { fence: 41n }],
      ["a tick, which the writer does not know of", "nothing", { tick: 42 }],
      ["a fence, which the writer does not know of", "nothing", { fence: 41n }],
    ])("a row that remembers %s stays, free on any clock", async (_case, remembers, differences) => {
      const row = await plant({ uuid: "mine", wanted: 5, data: { a: 1 }, ...differences });
      expect(await write(vacateOf(row, "mine", FREE, { remembers }))).toEqual({ ...APPLIED, replaced: row });
      const free = { ...row, uuid: undefined, expires: 0, wanted: undefined };
      expect(await read(row)).toEqual(free);
      const again = await write(takeWith({ at: row, knowledge: { earliest: 1 }, remembers: "tick" }));
      expect(again).toEqual({ ...APPLIED, replaced: free });
    });

    test.each(MEMORIES)("a row that remembers %s may stay taken until the end of its hold", async (remembers) => {
      const row = await plant({ uuid: "mine", expires: EARLIEST + 30_000, wanted: 5, ...REMEMBERS[remembers] });
      expect(await write(vacateOf(row, "mine", HELD, { remembers }))).toEqual({ ...APPLIED, replaced: row });
      const expected = { ...row, expires: EARLIEST + 7, ttlMs: 7, uuid: undefined, wanted: undefined };
      expect(await read(row)).toEqual(expected);
      const take = (earliest: number) => write(takeWith({ at: row, knowledge: { earliest }, remembers }));
      expect(await take(EARLIEST + 7)).toEqual(refusedBy(expected));
      expect(await take(EARLIEST + 8)).toMatchObject({ kind: "applied" });
    });

    test("nothing that a holder sent changes the row that it has left taken", async () => {
      const taking = takeWith({});
      const { at, uuid, expires } = taking;
      await write(taking);
      await write(vacateOf(at, uuid, HELD));
      const row = await read(at);
      const later: RowAfterRelease = { kind: "held", expires: EARLIEST + 9, ttlMs: 9 };
      const copies: readonly Write[] = [
        taking,
        renewalOf(at, uuid, expires + 1),
        reissueOf(at, { from: uuid, expires: expires + 1 }),
        ...ALL.map((leaves) => vacateOf(at, uuid, leaves)),
        vacateOf(at, uuid, later),
        transferOf(at, { from: uuid, expires: expires + 1 }),
        removalOf(at, uuid, expires),
        wantOf(at, EARLIEST + 9),
      ];
      for (const copy of copies) {
        expect(await write(copy)).toEqual(refusedBy(row));
        expect(await read(at)).toEqual(row);
      }
    });

    test("until its lease would have ended, the rest of the row stays, and nobody enters before", async () => {
      const row = await plant({ uuid: "theirs", expires: EARLIEST, data: { a: 1 }, wanted: 5, ...REMEMBERED });
      expect(await write(vacateOf(row, "theirs", { kind: "untilExpires" }))).toEqual({ ...APPLIED, replaced: row });
      expect(await read(row)).toEqual({ ...row, uuid: undefined });
      const take = (earliest: number) => write(takeWith({ at: row, knowledge: { earliest }, remembers: "tick" }));
      expect(await take(EARLIEST)).toMatchObject({ kind: "refused" });
      expect(await take(EARLIEST + 1)).toMatchObject({ kind: "applied" });
    });

    test.each<readonly [string, Partial<Row>]>([
      ["remembers nothing", {}],
      ["remembers a fence and a tick", REMEMBERED],
    ])("a row that %s may be kept, and is free at once, on any clock", async (_case, differences) => {
      const row = await plant({ uuid: "theirs", expires: EARLIEST, wanted: 5, ...differences });
      expect(await write(vacateOf(row, "theirs", { kind: "kept" }))).toEqual({ ...APPLIED, replaced: row });
      expect(await read(row)).toEqual({ ...row, uuid: undefined, expires: 0, wanted: undefined });
      const remembers = row.fence === undefined ? "nothing" : "tick";
      const take = takeWith({ at: row, knowledge: { earliest: 1 }, remembers });
      expect(await write(take)).toMatchObject({ kind: "applied" });
    });

    test.each(EACH)("nobody else's row is touched: $leaves.kind, $remembers", async ({ leaves, remembers }) => {
      const others = [{ uuid: "another" }, { uuid: undefined }, { uuid: undefined, expires: 0, ...REMEMBERED }];
      for (const differences of others) {
        const row = await plant(differences);
        expect(await write(vacateOf(row, "mine", leaves, { remembers }))).toEqual(refusedBy(row));
        expect(await read(row)).toEqual(row);
      }
      const at = lockAt(randomUUID());
      expect(await write(vacateOf(at, "mine", leaves, { remembers }))).toEqual(GONE);
      expect(await read(at)).toBeUndefined();
    });

    test.each(ALL)("a late copy leaves the next holder alone: $kind", async (leaves) => {
      const row = await plant({ uuid: "theirs", expires: EARLIEST - 1 });
      await write(vacateOf(row, "theirs", leaves));
      const next = takeWith({ at: lockAt(row.name), knowledge: { earliest: EARLIEST + 8 } });
      await write(next);
      expect(await write(vacateOf(row, "theirs", leaves))).toEqual(refusedBy(rowOf(next)));
      expect(await read(row)).toEqual(rowOf(next));
    });
  });

  describe("saying that somebody waits", () => {
    test("marks the row of whoever holds it, and changes nothing else", async () => {
      for (const uuid of ["theirs", "another"]) {
        const row = await plant({ uuid, expires: 100, fence: 1n, wanted: 5 });
        for (const wanted of [900, numberOfMark({ until: EARLIEST + 60_000, needMs: 2_250 })]) {
          expect(await write(wantOf(row, wanted))).toMatchObject({ kind: "applied" });
          expect(await read(row)).toEqual({ ...row, wanted });
        }
      }
    });
  });

  describe("the number of permits", () => {
    test("comes with a take, whatever the row remembers, and takes the place of another", async () => {
      for (const remembers of MEMORIES) {
        for (const before of [undefined, await plant({ expires: EARLIEST - 1, permits: 2 })]) {
          const taking = takeWith({ ...(before && { at: lockAt(before.name) }), permits: 3, remembers });
          expect(await write(taking)).toEqual({ ...APPLIED, replaced: before });
          expect(await read(taking.at)).toEqual({ ...rowOf(taking), permits: 3 });
        }
      }
    });

    test("stays whatever the holder does, and on a row that is kept", async () => {
      const row = await plant({ uuid: "mine", expires: 1, permits: 3, fence: 1n });
      const writes: readonly Write[] = [
        renewalOf(row, "mine", 2, { data: { a: 1 } }),
        wantOf(row, 900),
        reissueOf(row, { token: COUNTS, remembers: "fence" }),
        transferOf(row, { from: "fresh", uuid: "next", remembers: "fence" }),
        vacateOf(row, "next", FREE, { remembers: "fence" }),
      ];
      for (const value of writes) {
        expect(await write(value)).toMatchObject({ kind: "applied" });
        expect(await read(row)).toMatchObject({ permits: 3 });
      }
    });
  });

  describe("scanning", () => {
    async function listed(prefix: string): Promise<Row[]> {
      const rows: Row[] = [];
      let page = await store().scan(prefix, undefined, forever);
      for (;;) {
        rows.push(...page.rows);
        if (page.next === undefined) return rows.sort((one, other) => (one.name < other.name ? -1 : 1));
        page = await store().scan(prefix, page.next, forever);
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
      await plantItem(lockAt(`${prefix}-1`), attributes);
      const row = await plant({ name: `${prefix}-2` });
      expect(await listed(prefix)).toEqual([row]);
    });
  });

  describe("an item of somebody else's", () => {
    test.each(FOREIGN)("%s is shown, and no operation touches it", async (_case, attributes) => {
      const at = lockAt(randomUUID());
      await plantItem(at, attributes);
      const knowledge = { earliest: EARLIEST, unchanged: { uuid: "theirs", expires: 5 } };
      const writes: readonly Write[] = [
        ...MEMORIES.flatMap((remembers) => [takeWith({ at, remembers }), takeWith({ at, remembers, knowledge })]),
        takeWith({ at, tick: 9 }),
        takeWith({ at, token: COUNTS }),
        renewalOf(at, "ours", EARLIEST),
        reissueOf(at, { from: "ours", token: COUNTS }),
        transferOf(at, { from: "ours" }),
        transferOf(at, { from: "ours", after: 4 }),
        transferOf(at, { from: "ours", token: COUNTS }),
        removalOf(at, "ours", 5),
        removalOf(at, undefined, 5),
        vacateOf(at, "ours", FREE),
        vacateOf(at, "ours", FREE, { remembers: "tick" }),
        vacateOf(at, "ours", { kind: "held", expires: EARLIEST, ttlMs: 5 }),
        vacateOf(at, "ours", { kind: "untilExpires" }),
        vacateOf(at, "ours", { kind: "kept" }),
      ];
      for (const operation of [...writes.map((value) => () => write(value)), () => read(at)]) {
        await expect(operation()).rejects.toMatchObject(NOT_OURS);
        expect(await itemAt(at)).toEqual(attributes);
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
      const taking = takeWith({ data });
      store().admit(data);
      await write(taking);
      expect((await read(taking.at))?.data).toEqual(data);
    });

    test("a number that DynamoDB has in one form comes back in that form, whatever it was", async () => {
      const data = { five: 5n, zero: -0, deep: [{ zero: -0 }, 7n], numbers: new Set([5n]) };
      const taking = takeWith({ data });
      await write(taking);
      const stored = { five: 5, zero: 0, deep: [{ zero: 0 }, 7], numbers: new Set([5]) };
      expect((await read(taking.at))?.data).toEqual(stored);
      await write(renewalOf(taking.at, taking.uuid, taking.expires + 1, { data: { again: -0 } }));
      expect((await read(taking.at))?.data).toEqual({ again: 0 });
    });

    test.each(UNSTORABLE)("%s is refused by its path, and nothing is written", async (_case, data, path) => {
      const row = await plant({ uuid: "mine", expires: 99 });
      const refused = { name: "LockConfigError", code: "LOCK_CONFIG", option: path };
      expect(() => store().admit(data)).toThrow(expect.objectContaining(refused));
      for (const remembers of MEMORIES) {
        const taking = takeWith({ data, remembers });
        await expect(write(taking)).rejects.toMatchObject(refused);
        expect(await read(taking.at)).toBeUndefined();
      }
      await expect(write(renewalOf(row, "mine", 100, { data }))).rejects.toMatchObject(refused);
      expect(await read(row)).toEqual(row);
    });

    test("no data is no trouble", () => {
      expect(() => store().admit(undefined)).not.toThrow();
      expect(() => store().admit({})).not.toThrow();
    });
  });

  test("a request that was given up beforehand changes nothing", async () => {
    const taking = takeWith({});
    const given = store().write(taking, AbortSignal.abort());
    await expect(given).rejects.toMatchObject({ code: "LOCK_STORE", transient: true, answered: false });
    expect(await read(taking.at)).toBeUndefined();
  });
});
