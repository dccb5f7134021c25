import { randomUUID } from "node:crypto";
import { describe, expect, test } from "@jest/globals";
import { type Address, lockAt, MUTEX_QUEUE, placeAt, placesOf } from "../../../lib/protocol/addresses.js";
import { FORMAT } from "../../../lib/protocol/row.js";
import { NOT_OURS, takeWith } from "../../support/store-cases.js";
import { SORTED_SUBJECTS, tableSubject, useSubject } from "../../support/store-subjects.js";

const forever = new AbortController().signal;

function counterAt(name: string): Address {
  return { name, sort: MUTEX_QUEUE.counter };
}

describe.each(SORTED_SUBJECTS)("a counter of a store %s", (_, subjectOf) => {
  const { itemAt, plantItem, write } = useSubject(subjectOf);

  const draw = async (name: string, seed: number) => {
    const outcome = await write({ kind: "draw", at: counterAt(name), seed });
    return outcome.kind === "applied" ? outcome.drawn : undefined;
  };

  test("makes itself, from the seed on, and gives every number once", async () => {
    const name = randomUUID();
    const drawn = await Promise.all(Array.from({ length: 20 }, () => draw(name, 1_000)));
    const expected = Array.from({ length: 20 }, (_n, index) => 1_001 + index);
    expect(drawn.map(Number).sort((one, other) => one - other)).toEqual(expected);
  });

  test.each([
    [5n, 6n],
    [10n ** 38n - 3n, 10n ** 38n - 2n],
  ])("that is at %p goes on exactly, whatever the seed", async (last, next) => {
    const name = randomUUID();
    await plantItem(counterAt(name), { format: FORMAT, n: last });
    expect(await draw(name, 1_000)).toBe(next);
  });

  test("that was purged starts behind all that it ever gave, because its seed is a time", async () => {
    const name = randomUUID();
    const before = await draw(name, 1_000_000);
    await plantItem(counterAt(name), undefined);
    expect(await draw(name, 1_000_500)).toBeGreaterThan(before ?? 0n);
  });

  test("has nothing to do with that of another name", async () => {
    for (const name of [randomUUID(), randomUUID()]) expect(await draw(name, 10)).toBe(11n);
  });

  test.each([
    ["without a format", { n: 5, mark: "their own" }],
    ["that counts with something else than a number", { n: "5", format: FORMAT, mark: "their own" }],
    ["that does not count", { format: FORMAT, mark: "their own" }],
  ])("is never an item of somebody else's %s, which is shown and left alone", async (_case, item) => {
    const at = counterAt(randomUUID());
    await plantItem(at, item);
    await expect(write({ kind: "draw", at, seed: 1_000 })).rejects.toMatchObject(NOT_OURS);
    expect(await itemAt(at)).toEqual(item);
  });
});

describe("a table without a sort key", () => {
  const { itemAt, read, store, write } = useSubject(() => tableSubject({ keys: { sort: null } }));

  test("has no rows beside the locks' own, and never takes one for the other", async () => {
    const at = placeAt(randomUUID(), 7n);
    const range = { name: at.name, ...placesOf(MUTEX_QUEUE), limit: 1, consistent: true };
    const operations: readonly (() => Promise<unknown>)[] = [
      () => write(takeWith({ at })),
      () => write({ kind: "draw", at: counterAt(at.name), seed: 1 }),
      () => store().writeAll([takeWith({ at })], forever),
      () => read(at),
      () => store().query(range, forever),
    ];
    for (const operation of operations) await expect(operation()).rejects.toThrow("has no sort key");
    expect(await itemAt(lockAt(at.name))).toBeUndefined();
  });
});
