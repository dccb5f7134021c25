import { randomUUID } from "node:crypto";
import { describe, expect, test } from "@jest/globals";
import { lockAt } from "../../../lib/protocol/addresses.js";
import type { Row } from "../../../lib/protocol/row.js";
import { wasApplied } from "../../../lib/protocol/was-applied.js";
import { EARLIEST, itemOf, NOT_OURS, rowOf, rowWith, takeWith } from "../../support/store-cases.js";
import { ALL_SUBJECTS, useSubject } from "../../support/store-subjects.js";
import {
  APPLIED,
  FREE,
  GONE,
  REMEMBERED,
  refusedBy,
  removalOf,
  renewalOf,
  vacateOf,
} from "../../support/write-cases.js";

describe.each(ALL_SUBJECTS)("removals in a store %s", (_, subjectOf) => {
  const { itemAt, plant, plantItem, read, write } = useSubject(subjectOf);

  /** A lease, as it was seen; and a hold without a uuid. */
  const SEEN: Partial<Row> = { uuid: "theirs", expires: 100 };
  const HOLD: Partial<Row> = { uuid: undefined, expires: 100 };

  test.each<readonly [string, Partial<Row>]>([
    ["a lease", SEEN],
    ["a lease that others wait for, with data and permits", { ...SEEN, wanted: 5, data: { a: 1 }, permits: 3 }],
    ["a hold without a holder", HOLD],
    ["a hold with data and permits", { ...HOLD, data: { a: 1 }, permits: 3 }],
    ["a row that is kept but free, and remembers nothing", { uuid: undefined, expires: 0 }],
  ])("%s is deleted if it is as it was seen, and nothing of it is told", async (_case, differences) => {
    const row = await plant(differences);
    expect(await write(removalOf(row, row.uuid, row.expires))).toEqual(APPLIED);
    expect(await itemAt(row)).toBeUndefined();
  });

  test.each<readonly [string, Partial<Row>, Partial<Row>]>([
    ["a lease that was renewed", SEEN, { ...SEEN, expires: 101 }],
    ["a lease with an earlier stamp", SEEN, { ...SEEN, expires: 99 }],
    ["another's lease, with the same stamp", SEEN, { ...SEEN, uuid: "another" }],
    ["a hold that was left by who was seen", SEEN, HOLD],
    ["a lease where a hold was seen", HOLD, SEEN],
    ["a longer hold", HOLD, { ...HOLD, expires: 101 }],
    ["a shorter hold", HOLD, { ...HOLD, expires: 99 }],
    ["a row that was kept since", HOLD, { uuid: undefined, expires: 0 }],
    ["a hold where a kept row was seen", { uuid: undefined, expires: 0 }, { uuid: undefined, expires: 1 }],
  ])("%s stays", async (_case, seen, differences) => {
    const row = await plant(differences);
    expect(await write(removalOf(row, seen.uuid, seen.expires ?? 0))).toEqual(refusedBy(row));
    expect(await read(row)).toEqual(row);
  });

  test.each<readonly [string, Partial<Row>]>([
    ["a token", { fence: 41n }],
    ["a tick", { tick: 42 }],
    ["both", REMEMBERED],
  ])("a row that remembers %s stays, as it was seen or not", async (_case, remembered) => {
    for (const differences of [SEEN, HOLD, { uuid: undefined, expires: 0 }]) {
      const row = await plant({ ...differences, ...remembered });
      expect(await write(removalOf(row, row.uuid, row.expires))).toEqual(refusedBy(row));
      expect(await read(row)).toEqual(row);
    }
  });

  test.each([
    ["another format", { format: 2 }],
    ["a format that is no number", { format: "1" }],
    ["no format", {}],
  ])("an item of %s stays, and is shown", async (_case, formatted) => {
    for (const differences of [SEEN, HOLD]) {
      const row = rowWith(differences);
      const { format: _ours, ...attributes } = itemOf(row);
      const item = { ...attributes, ...formatted, mark: "their own" };
      await plantItem(row, item);
      await expect(write(removalOf(row, row.uuid, row.expires))).rejects.toMatchObject(NOT_OURS);
      expect(await itemAt(row)).toEqual(item);
    }
  });

  test("there is nothing to remove where there is no row, and a second copy finds none", async () => {
    const at = lockAt(randomUUID());
    for (const uuid of ["theirs", undefined]) {
      expect(await write(removalOf(at, uuid, 100))).toEqual(GONE);
      const row = await plant({ uuid, expires: 100 });
      await write(removalOf(row, uuid, 100));
      expect(await write(removalOf(row, uuid, 100))).toEqual(GONE);
    }
  });

  test("a late copy leaves the next holder alone, and what this one leaves", async () => {
    const row = await plant({ expires: EARLIEST - 1 });
    const removal = removalOf(row, "theirs", EARLIEST - 1);
    await write(removal);
    const next = takeWith({ at: lockAt(row.name), expires: EARLIEST - 1, knowledge: { earliest: 1 } });
    await write(next);
    expect(await write(removal)).toEqual(refusedBy(rowOf(next)));
    await write(vacateOf(row, next.uuid, { kind: "untilExpires" }));
    expect(await write(removal)).toEqual(refusedBy({ ...rowOf(next), uuid: undefined }));
  });

  test("a removal is never taken for applied: another one says the same", async () => {
    const row = await plant(SEEN);
    const removal = removalOf(row, "theirs", 99);
    await write(removal);
    for (const refusing of [row, undefined]) expect(wasApplied(removal, refusing)).toBe("no");
  });

  test("whoever renews in time keeps its row; whoever comes too late finds none", async () => {
    const row = await plant(SEEN);
    await write(renewalOf(row, "theirs", 101));
    expect(await write(removalOf(row, "theirs", 100))).toMatchObject({ kind: "refused" });
    await write(removalOf(row, "theirs", 101));
    expect(await write(renewalOf(row, "theirs", 102))).toEqual(GONE);
    expect(await write(vacateOf(row, "theirs", FREE))).toEqual(GONE);
  });
});
