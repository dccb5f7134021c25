import { randomUUID } from "node:crypto";
import { describe, expect, test } from "@jest/globals";
import { lockAt } from "../../../lib/protocol/addresses.js";
import type { Row } from "../../../lib/protocol/row.js";
import { purgeAt } from "../../../lib/protocol/rules.js";
import { wasApplied } from "../../../lib/protocol/was-applied.js";
import type { Write } from "../../../lib/protocol/writes.js";
import { EARLIEST, itemOf, rowOf, rowWith, takeWith } from "../../support/store-cases.js";
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
  renewalOf,
  transferOf,
  vacateOf,
} from "../../support/write-cases.js";

/** What a transfer writes, if it draws no token. */
const FRESH: Partial<Row> = { uuid: "fresh", expires: 100, ttlMs: 7_000, owner: "host#3" };

describe.each(ALL_SUBJECTS)("transfers in a store %s", (_, subjectOf) => {
  const defaults = { uuid: "mine", data: { a: 1 }, wanted: 5, permits: 3 };
  const { itemAt, plant, plantItem, read, write } = useSubject(subjectOf, defaults);

  test.each([
    ["an earlier stamp", 101],
    ["the same stamp", 100],
    ["a later stamp", 99],
  ])("the uuid alone hands the row on, to %s and on a lease of another length", async (_case, expires) => {
    const row = await plant({ expires });
    expect(await write(transferOf(row))).toEqual({ ...APPLIED, replaced: row });
    expect(await read(row)).toEqual({ ...row, ...FRESH });
  });

  test("what else is on the row stays: since when it is taken, data, the mark, the permits, what it remembers", async () => {
    for (const differences of [{}, { fence: 41n }, { tick: 42 }, REMEMBERED]) {
      const row = await plant({ acquired: 17, ...differences });
      expect(await write(transferOf(row, { remembers: "tick" }))).toEqual({ ...APPLIED, replaced: row });
      expect(await read(row)).toEqual({ ...row, ...FRESH });
    }
  });

  test.each<readonly [string, Partial<Row>]>([
    ["another holder's", { uuid: "another" }],
    ["no holder's", { uuid: undefined }],
    ["a kept one", { uuid: undefined, expires: 0, ...REMEMBERED }],
    ["that of who has it already", { uuid: "fresh" }],
  ])("a row that is %s is refused", async (_case, differences) => {
    const row = await plant({ fence: 7n, expires: 99, ...differences });
    for (const fenced of [false, true]) {
      for (const after of [undefined, 98]) {
        expect(await write(transferOf(row, { token: fenced ? COUNTS : undefined, after, remembers: "tick" }))).toEqual(
          refusedBy(row),
        );
      }
    }
    expect(await read(row)).toEqual(row);
  });

  test("no row is made where there is none", async () => {
    const at = lockAt(randomUUID());
    for (const fenced of [false, true]) {
      for (const after of [undefined, 1])
        expect(await write(transferOf(at, { token: fenced ? COUNTS : undefined, after }))).toEqual(GONE);
    }
    expect(await read(at)).toBeUndefined();
  });

  describe("for a row whose stamp is later than the first of its uuid", () => {
    test.each<readonly [string, number, "applied" | "refused"]>([
      ["a later stamp is handed on", 51, "applied"],
      ["that very stamp is refused", 50, "refused"],
      ["an earlier stamp is refused", 49, "refused"],
    ])("%s", async (_case, expires, kind) => {
      for (const fenced of [false, true]) {
        const row = await plant({ expires, fence: 7n });
        const drawn = fenced ? 8n : undefined;
        const outcome = await write(
          transferOf(row, { after: 50, token: fenced ? COUNTS : undefined, remembers: "fence" }),
        );
        expect(outcome).toEqual(kind === "applied" ? { kind, replaced: row, drawn } : refusedBy(row));
        expect(await read(row)).toEqual(kind === "applied" ? { ...row, ...FRESH, fence: drawn ?? 7n } : row);
      }
    });

    test("a late copy of the take cannot bring the row back to be handed on once more", async () => {
      const taking = takeWith({});
      const { at, uuid, expires } = taking;
      const transfer = transferOf(at, { from: uuid, after: expires });
      await write(taking);
      await write(renewalOf(at, uuid, expires + 1));
      expect(await write(transfer)).toMatchObject({ kind: "applied" });
      await write(vacateOf(at, "fresh", FREE));
      expect(await write(taking)).toEqual(APPLIED);
      expect(await write(transfer)).toEqual(refusedBy(rowOf(taking)));
      expect(await read(at)).toEqual(rowOf(taking));
    });
  });

  describe("with a token", () => {
    test.each([0n, 41n, 2n ** 80n])("the next one is drawn, exactly: after %p", async (fence) => {
      for (const after of [undefined, 1]) {
        const row = await plant({ fence });
        const outcome = await write(transferOf(row, { after, token: COUNTS, remembers: "fence" }));
        expect(outcome).toEqual({ kind: "applied", replaced: row, drawn: fence + 1n });
        expect(await read(row)).toEqual({ ...row, ...FRESH, fence: fence + 1n });
      }
    });

    test("a row that has none is refused", async () => {
      for (const differences of [{}, { tick: 42 }]) {
        const row = await plant(differences);
        for (const after of [undefined, 1])
          expect(await write(transferOf(row, { after, token: COUNTS }))).toEqual(refusedBy(row));
        expect(await read(row)).toEqual(row);
      }
    });
  });

  describe("more than once", () => {
    test("a second copy is refused by the row that the first one wrote, and knows it", async () => {
      const row = await plant({ expires: 99, fence: 7n });
      const transfer = transferOf(row, { after: 98, token: COUNTS, remembers: "fence" });
      await write(transfer);
      const handedOn = { ...row, ...FRESH, fence: 8n };
      expect(await write(transfer)).toEqual(refusedBy(handedOn));
      expect(wasApplied(transfer, handedOn)).toBe("yes");
      expect(await read(row)).toEqual(handedOn);
    });
  });

  test("nothing that was written under the old uuid passes any more; what its next holder writes does", async () => {
    const row = await plant({ expires: 99, fence: 7n });
    await write(transferOf(row, { remembers: "fence" }));
    const handedOn = { ...row, ...FRESH };
    const old: readonly Write[] = [
      renewalOf(row, "mine", 200),
      reissueOf(row, { uuid: "another", expires: 200 }),
      transferOf(row, { uuid: "another" }),
      vacateOf(row, "mine", FREE),
      vacateOf(row, "mine", { kind: "untilExpires" }),
      { kind: "remove", at: row, seenUuid: "mine", seenExpires: 99 },
      { kind: "check", at: row, uuid: "mine", after: 1, fence: undefined },
    ];
    for (const value of old) expect(await write(value)).toEqual(refusedBy(handedOn));
    expect(await read(row)).toEqual(handedOn);
    expect(await write(renewalOf(row, "fresh", 101))).toMatchObject({ kind: "applied" });
    expect(await write({ kind: "check", at: row, uuid: "fresh", after: 100, fence: 7n })).toEqual(APPLIED);
  });

  test("who watched the lease before cannot take the row, even if its stamp is the same", async () => {
    const row = await plant({ expires: EARLIEST + 1 });
    await write(transferOf(row, { expires: EARLIEST + 1 }));
    const knowledge = { earliest: EARLIEST, unchanged: { uuid: "mine", expires: EARLIEST + 1 } };
    const handedOn = { ...row, ...FRESH, expires: EARLIEST + 1 };
    expect(await write(takeWith({ at: lockAt(row.name), knowledge }))).toEqual(refusedBy(handedOn));
  });

  test("the purge date goes with the stamp, also to an earlier one; with a tick there is none", async () => {
    // Not in the past, or the engine's own TTL may remove the row.
    const [later, earlier] = [4_000_000_000_000, 3_900_000_000_000];
    for (const remembers of MEMORIES) {
      const row = rowWith({ uuid: "mine", expires: later, ...REMEMBERS[remembers] });
      await plantItem(row, { ...itemOf(row), purge: purgeAt(row.expires) });
      await write(transferOf(row, { expires: earlier, remembers }));
      expect((await itemAt(row))?.purge).toBe(remembers === "tick" ? undefined : purgeAt(earlier));
    }
  });
});
