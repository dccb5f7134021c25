import type { AttributeValue } from "@aws-sdk/client-dynamodb";
import { z } from "zod/v3";
import { LockStoreError } from "../errors.js";
import { lazily } from "../options/check.js";
import type { TableLayout } from "../options/table.js";
import { FORMAT, purgeAt } from "../protocol/row.js";
import type { Claim, Row } from "../store.js";
import { marshalledData, unmarshalledData } from "./data.js";

export type Item = Record<string, AttributeValue>;

/** What the sort key of a lock's row is, in a table that has one. */
export const LOCK_SORT = "lock";
const MAX_SHOWN = 500;

const has = <Member extends AttributeValue>(type: keyof Member, message: string) =>
  z.custom<Member>((value) => typeof value === "object" && value !== null && type in value, message);

const text = has<AttributeValue.SMember>("S", "must be a string").transform(({ S }) => S);
const digits = has<AttributeValue.NMember>("N", "must be a number").transform(({ N }) => N);
const integer = digits.transform(Number).refine(Number.isSafeInteger, "must be a whole number");
// Kept exact: a fencing token may exceed 2^53.
const token = digits.refine((N) => /^\d+$/.test(N), "must be a whole number").transform(BigInt);
const map = has<AttributeValue.MMember>("M", "must be a map").transform(({ M }) => unmarshalledData(M));

const rowSchema = lazily(() =>
  z.object({
    format: integer.refine((format) => format === FORMAT, `must be ${FORMAT}`),
    uuid: text.optional(),
    expires: integer,
    ttlMs: integer,
    owner: text,
    acquired: integer,
    data: map.optional(),
    wanted: integer.optional(),
    fence: token.optional(),
    tick: integer.optional(),
  }),
);

/** The key of a lock's row. */
export function keyOf(layout: TableLayout, name: string): Item {
  const key: Item = { [layout.partition]: { S: layout.keyPrefix + name } };
  if (layout.sort !== undefined) key[layout.sort] = { S: LOCK_SORT };
  return key;
}

/** The whole item that a claim puts. */
export function itemOf(layout: TableLayout, claim: Claim): Item {
  const item = keyOf(layout, claim.name);
  item.format = number(FORMAT);
  item.uuid = { S: claim.uuid };
  item.expires = number(claim.expires);
  item.ttlMs = number(claim.ttlMs);
  item.owner = { S: claim.owner };
  item.acquired = number(claim.acquired);
  item[layout.ttl] = number(purgeAt(claim.expires));
  if (claim.data !== undefined) item.data = marshalledData(claim.data);
  return item;
}

/** The row that an item shows. @throws {@link LockStoreError} if this library did not write the item. */
export function rowOf(layout: TableLayout, item: Item): Row {
  const parsed = rowSchema().safeParse(item);
  if (!parsed.success) {
    const { path, message } = parsed.error.issues[0] ?? { path: [], message: "" };
    throw foreign(layout, item, `its ${path[0]} ${message}`);
  }
  const { format: _, ...row } = parsed.data;
  return { name: (item[layout.partition]?.S ?? "").slice(layout.keyPrefix.length), ...ABSENT, ...row };
}

/** The fencing token that an item carries, whatever else it is. */
export function fenceOf(item: Item | undefined): bigint | undefined {
  return item?.fence === undefined ? undefined : token.parse(item.fence);
}

/** @throws RangeError for what would not parse when the row is read. */
export function number(value: number): AttributeValue {
  if (!Number.isSafeInteger(value)) throw new RangeError(`A row holds whole numbers only, not ${value}`);
  return { N: `${value}` };
}

const ABSENT = { uuid: undefined, data: undefined, wanted: undefined, fence: undefined, tick: undefined };

export function foreign(layout: TableLayout, item: Item, because: string): LockStoreError {
  return new LockStoreError(
    `Table ${layout.tableName} has an item under this lock's key that is not a lock: ${because}. It was left as it is. ` +
      "Give the locks a table of their own, or a keyPrefix that nothing else uses, or remove the item if it is not " +
      `needed: ${show(item)}`,
  );
}

function show(item: Item): string {
  const json = JSON.stringify(item, (_key, value) =>
    value instanceof Uint8Array ? Buffer.from(value).toString("base64") : value,
  );
  return json.length > MAX_SHOWN ? `${json.slice(0, MAX_SHOWN)}…` : json;
}
