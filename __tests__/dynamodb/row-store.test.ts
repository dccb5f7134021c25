import { expect, test } from "@jest/globals";
import { TableSign } from "../../lib/dynamodb/table-sign.js";
import { LockStoreError } from "../../lib/errors.js";
import { lockAt } from "../../lib/protocol/addresses.js";
import { MemoryTable } from "../../lib/testing/memory-table.js";
import type { Message } from "../support/message.js";
import { answerOf, MemoryStore } from "../support/message-store.js";
import { takeWith } from "../support/store-cases.js";

const forever = new AbortController().signal;

/** A table whose replies have no sign, and a way to it that may lose replies, or be told that a read is throttled. */
function unsigned(fails: (message: Message) => LockStoreError | undefined): MemoryStore {
  const table = new MemoryTable();
  const carry = async (message: Message) => {
    const answer = answerOf(table, message);
    const error = fails(message);
    if (error !== undefined) throw error;
    return answer;
  };
  return new MemoryStore(table, carry, new TableSign());
}

test("trap 48: a take whose first copy lost its reply makes the table known by the refusal of its second", async () => {
  let isLost = true;
  const store = unsigned(() => {
    if (!isLost) return undefined;
    isLost = false;
    return new LockStoreError("silence", { transient: true, answered: false });
  });
  const take = takeWith({ at: lockAt("a"), uuid: "mine" });
  await expect(store.write(take, forever)).rejects.toThrow("silence");
  expect(store.isKnown).toBe(false);
  expect(await store.write(take, forever)).toMatchObject({ kind: "refused", row: { uuid: "mine" } });
  expect(store.isKnown).toBe(true);
});

test.each(["one row", "two rows"])("trap 36: a take of %s stays in doubt if it cannot be read back", async (rows) => {
  const throttled = new LockStoreError("throttled", { transient: true, throttled: true });
  const store = unsigned(({ kind }) => (kind === "read" ? throttled : undefined));
  const takes = ["a", "b"].map((name) => takeWith({ at: lockAt(name), uuid: `mine-${name}` }));
  const [first] = takes as [(typeof takes)[number]];
  const taking = rows === "one row" ? store.write(first, forever) : store.writeAll(takes, forever);
  await expect(taking).rejects.toMatchObject({ transient: true, throttled: true, answered: false, retried: true });
});
