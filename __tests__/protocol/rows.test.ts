import { randomUUID } from "node:crypto";
import { BatchWriteItemCommand } from "@aws-sdk/client-dynamodb";
import { describe, expect, test } from "@jest/globals";
import { viewOf } from "../../lib/cli/lock-view.js";
import { linesOf } from "../../lib/cli/ls.js";
import { arrayToJson } from "../../lib/cli/output.js";
import { actionOf, type Item } from "../../lib/dynamodb/compile.js";
import { attributesOf } from "../../lib/dynamodb/items.js";
import { LockError, type LockInfo, LockTable, LockTimeoutError, type WaiterInfo } from "../../lib/index.js";
import { tableLayout } from "../../lib/options/table.js";
import {
  type Address,
  LOCK_SORT,
  PERMITS,
  placeSort,
  READERS,
  SEMAPHORE_QUEUE,
  WRITER_SORT,
} from "../../lib/protocol/addresses.js";
import { apply } from "../../lib/protocol/apply.js";
import { type Attributes, infoOf, parseRow, type Row } from "../../lib/protocol/row.js";
import { TestTable } from "../../lib/testing/index.js";
import { IS_FULL } from "../support/full.js";
import { generatedItem } from "../support/generated-items.js";
import { takeWith } from "../support/store-cases.js";
import { rawItem } from "../support/store-subjects.js";
import { createTestTable, testClient } from "../support/table.js";
import { COUNTS } from "../support/write-cases.js";

/** The same items for every change; ROWS_SEED plays others. */
const SEED = Number(process.env.ROWS_SEED ?? 1);
const ITEMS = 10_000;
/** So many of them are put in tables, which takes longer than to parse them. */
const SHOWN_ITEMS = IS_FULL ? ITEMS : 2_000;
const ENGINE_ITEMS = 100;
const AT_ONCE = 25;

const layout = tableLayout({ tableName: "locks" });
const items = Array.from({ length: ITEMS }, (_, index) => attributesOf(layout, generatedItem(SEED, index)));

/** After every `expires` that a row can have. */
const AFTER_ALL = 9e15;

/** What all leases are over for. */
const ALL_OVER = { expires: AFTER_ALL, knowledge: { earliest: AFTER_ALL } };

/** One of each form that a take has. */
const TAKES = (["nothing", "fence", "tick"] as const).flatMap((remembers) =>
  [undefined, 5].flatMap((tick) =>
    [undefined, COUNTS].map((token) => takeWith({ ...ALL_OVER, remembers, tick, token })),
  ),
);

const parsedRow = (item: Attributes, sort = LOCK_SORT): Row | undefined => {
  const parsed = parseRow({ name: "x", sort }, item);
  return "row" in parsed ? parsed.row : undefined;
};

/** A result, or an error that says what is wrong. Anything else fails the test. */
async function orLockError<Result>(work: () => Promise<Result>): Promise<Result | undefined> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof LockError) return undefined;
    throw error;
  }
}

/** What the operators of a lock see of it, by the kind of the row that is there. */
const INSPECTIONS: readonly (readonly [sort: string, (locks: LockTable, name: string) => Promise<readonly Shown[]>])[] =
  [
    [LOCK_SORT, async (locks, name) => someOf(await locks.mutex(name).inspect())],
    [PERMITS.first, async (locks, name) => (await locks.semaphore(name, { permits: 2 }).inspect()).holders],
    [WRITER_SORT, async (locks, name) => someOf((await locks.sharedMutex(name).inspect()).exclusive)],
    [READERS.first + randomUUID(), async (locks, name) => (await locks.sharedMutex(name).inspect()).shared],
    [placeSort(7n, SEMAPHORE_QUEUE), async (locks, name) => (await semaphoreOf(locks, name).inspect()).waiters],
  ];

type Shown = LockInfo | WaiterInfo;

const semaphoreOf = (locks: LockTable, name: string) => locks.semaphore(name, { permits: 1, fair: true });
const someOf = (lock: LockInfo | null): readonly LockInfo[] => (lock === null ? [] : [lock]);

/** Asks for the lock that the row is of. */
async function take(locks: LockTable, { name, sort }: Address): Promise<void> {
  if (sort === LOCK_SORT) await locks.mutex(name).tryLock();
  else if (sort === WRITER_SORT) await locks.sharedMutex(name).exclusive.tryLock();
  else await semaphoreOf(locks, name).tryLock();
}

/** The listing of a whole table, as the command shows it. */
async function listed(locks: LockTable): Promise<LockInfo[]> {
  const found: LockInfo[] = [];
  for await (const lock of locks.list({ includeFree: true })) found.push(lock);
  const views = found.map((lock) => viewOf(lock, { earliest: 5, latest: 5 }));
  expect(linesOf(views)).toHaveLength(views.length + 1);
  expect(JSON.parse(arrayToJson(views))).toHaveLength(views.length);
  return found;
}

describe(`with seed ${SEED}`, () => {
  test("trap 47: parsing never throws, and what it gives can be shown", () => {
    let rows = 0;
    for (const item of items) {
      const row = parsedRow(item);
      if (row === undefined) continue;
      rows += 1;
      const info = infoOf(row);
      expect(() => [info.acquired.toISOString(), new LockTimeoutError("x", 1, info)]).not.toThrow();
    }
    // Both kinds of items were met.
    expect(rows).toBeGreaterThan(ITEMS / 10);
    expect(ITEMS - rows).toBeGreaterThan(ITEMS / 10);
  });

  test("trap 25: a take that would be let through meets a row that parses, whatever the types are", () => {
    // No condition can ask for a whole token: the take sees the others in its reply, and puts them back (behaviour/bad-rows.test.ts).
    const hasFraction = ({ fence }: Attributes): boolean => typeof fence === "number" && !Number.isInteger(fence);
    const overwritten = items.filter(
      (item) =>
        !hasFraction(item) &&
        parsedRow(item) === undefined &&
        TAKES.some((take) => apply(item, take).kind === "applied"),
    );
    expect({ count: overwritten.length, first: overwritten[0] }).toEqual({ count: 0, first: undefined });
  });

  test("a row that parses may be taken once it is over, whatever it remembers", () => {
    const take = takeWith({ ...ALL_OVER, remembers: "tick" });
    const refused = items.filter((item) => parsedRow(item) !== undefined && apply(item, take).kind === "refused");
    expect({ count: refused.length, first: refused[0] }).toEqual({ count: 0, first: undefined });
  });

  test("trap 47: whatever is in the table, all of it is shown, and what does not parse is left as it is", async () => {
    let bad = 0;
    for (let from = 0; from < SHOWN_ITEMS; from += AT_ONCE) {
      const table = new TestTable({ time: "manual" });
      const locks = table.host();
      const planted = items.slice(from, from + AT_ONCE).map((item, index) => {
        const [sort, inspect] = INSPECTIONS[index % INSPECTIONS.length] ?? [LOCK_SORT, async () => []];
        const at = { name: `${index}`, sort };
        table.memory.plant(at, item);
        return { at, item, inspect };
      });
      bad += (await listed(locks)).filter(({ problem }) => problem !== undefined).length;
      for (const { at, item, inspect } of planted) {
        const shown = (await orLockError(() => inspect(locks, at.name))) ?? [];
        expect(() => shown.map(({ expires }) => expires.toISOString())).not.toThrow();
        if (parsedRow(item) !== undefined) continue;
        await orLockError(() => take(locks, at));
        expect(table.memory.item(at)).toBe(item);
      }
    }
    expect(bad).toBeGreaterThan(SHOWN_ITEMS / 10);
  });

  test("trap 25: on the engine as well, what does not parse is left as it is", async () => {
    const client = testClient();
    const tableName = await createTestTable();
    const onEngine = tableLayout({ tableName });
    const planted = Array.from({ length: ENGINE_ITEMS }, (_, index) => ({
      ...generatedItem(SEED, index),
      ...keyAt(index),
    }));
    await using locks = new LockTable({ tableName, client });
    for (let from = 0; from < ENGINE_ITEMS; from += AT_ONCE) {
      const puts = planted.slice(from, from + AT_ONCE).map((Item) => ({ PutRequest: { Item } }));
      await client.send(new BatchWriteItemCommand({ RequestItems: { [tableName]: puts } }));
    }
    expect((await listed(locks)).length).toBeGreaterThan(ENGINE_ITEMS / 2);
    const attempt = async (name: string): Promise<void> => {
      const at = { name, sort: LOCK_SORT };
      const before = await rawItem(client, onEngine, at);
      await orLockError(() => locks.mutex(name).inspect());
      const lock = await orLockError(() => locks.mutex(name).tryLock());
      if (before === undefined || parsedRow(attributesOf(onEngine, before)) !== undefined) return await lock?.unlock();
      expect([name, lock, await rawItem(client, onEngine, at)]).toEqual([name, undefined, before]);
    };
    await Promise.all(planted.map((_, index) => attempt(`${index}`)));
  });
});

const keyAt = (index: number): Item => ({ name: { S: `${index}` }, sort: { S: LOCK_SORT } });

test("no condition comes near the 4 KB that DynamoDB takes of an expression", () => {
  const lengths = TAKES.map((take) => {
    const { Put, Update } = actionOf(layout, take);
    return (Put?.ConditionExpression ?? Update?.ConditionExpression ?? "").length;
  });
  expect(Math.max(...lengths)).toBeLessThan(1_024);
  expect(Math.min(...lengths)).toBeGreaterThan(100);
});
