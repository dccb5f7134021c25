import { beforeAll, describe, expect, test } from "@jest/globals";
import { LockStoreError } from "../../../lib/errors.js";
import type { Row } from "../../../lib/protocol/row.js";
import { purgeAt } from "../../../lib/protocol/rules.js";
import type { Renew } from "../../../lib/protocol/writes.js";
import { EARLIEST, itemOf, rowWith } from "../../support/store-cases.js";
import { ALL_SUBJECTS, useSubject } from "../../support/store-subjects.js";
import { APPLIED, GONE, REMEMBERED, refusedBy, renewalOf } from "../../support/write-cases.js";

/** Renewals that are asked for in one turn: whether the store sends them together shows in nothing but its requests. */
describe.each(ALL_SUBJECTS)("a store %s, asked for many renewals at once,", (_where, subjectOf) => {
  const { itemAt, plant, plantItem, write } = useSubject(subjectOf, { uuid: "mine" });
  let stamp = EARLIEST + 1_000;

  beforeAll(async () => {
    const rows = await Promise.all(Array.from({ length: 32 }, () => plant({})));
    // The more of them were answered, the more go together.
    for (let count = 1; count <= 32; count *= 2) await renewAll(rows.slice(0, count));
  });

  const renewAll = (rows: readonly Row[], differences: (row: Row) => Partial<Renew> = () => ({})) => {
    stamp += 1_000;
    const renewals = rows.map((row, index) => renewalOf(row, "mine", stamp + index, differences(row)));
    return Promise.all(renewals.map((renewal) => write(renewal).catch((error) => error)));
  };

  test("renews each of them with its own stamp, and leaves the rest of the row as it is", async () => {
    const rows = await Promise.all(
      Array.from({ length: 30 }, (_, index) => plant(index % 2 === 0 ? {} : { data: { index }, permits: index })),
    );
    expect(await renewAll(rows)).toEqual(rows.map(() => APPLIED));
    for (const [index, row] of rows.entries()) {
      const expires = stamp + index;
      expect(await itemAt(row)).toEqual({ ...itemOf(row), expires, purge: purgeAt(expires) });
    }
  });

  test("removes the date to be purged from a row with a tick", async () => {
    const rows = await Promise.all([plant(REMEMBERED), plant({}), plant(REMEMBERED)]);
    await renewAll(rows, ({ tick }) => ({ remembers: tick === undefined ? "nothing" : "tick" }));
    const purges = await Promise.all(rows.map(async (row) => (await itemAt(row))?.purge));
    expect(purges).toEqual([undefined, purgeAt(stamp + 1), undefined]);
  });

  test("trap 41: refuses those that are not the writer's, gone, or stamped later, each with its own row, and renews the others", async () => {
    const mine = await plant({});
    const theirs = await plant({ uuid: "theirs" });
    const later = await plant({ expires: stamp + 1_000_000 });
    const free = await plant({ uuid: undefined, expires: 0 });
    const gone = rowWith({});
    const other = await plant({});
    const outcomes = await renewAll([mine, theirs, later, free, gone, other]);
    expect(outcomes).toEqual([APPLIED, refusedBy(theirs), refusedBy(later), refusedBy(free), GONE, APPLIED]);
    expect(await itemAt(theirs)).toEqual(itemOf(theirs));
  });

  test("shows the mark of others on the rows that carry one, as they were", async () => {
    const [marked, plain] = [await plant({ wanted: EARLIEST + 60_000 }), await plant({})];
    expect(await renewAll([marked, plain])).toEqual([{ ...APPLIED, replaced: marked }, APPLIED]);
    expect(await renewAll([marked])).toEqual([{ ...APPLIED, replaced: { ...marked, expires: stamp - 1_000 } }]);
  });

  test("blames an item that this library did not write for its own renewal alone", async () => {
    const [mine, foreign, other] = [await plant({}), rowWith({}), await plant({})];
    await plantItem(foreign, { mark: "their own" });
    const [first, second, third] = await renewAll([mine, foreign, other]);
    expect([first, third]).toEqual([APPLIED, APPLIED]);
    expect(second).toBeInstanceOf(LockStoreError);
    expect(await itemAt(foreign)).toEqual({ mark: "their own" });
  });

  test("the same row twice at once is renewed by both, one after the other", async () => {
    const row = await plant({});
    const [first, second] = await renewAll([row, row]);
    expect([first, second].map((outcome) => (outcome as { kind: string }).kind)).toContain("applied");
    expect((await itemAt(row))?.expires).toBeGreaterThanOrEqual(stamp);
  });
});
