import type {
  AttributeValue,
  DeleteItemCommandInput,
  GetItemCommandInput,
  PutItemCommandInput,
  TransactWriteItem,
  UpdateItemCommandInput,
} from "@aws-sdk/client-dynamodb";
import type { LockData } from "../lock-info.js";
import type { TableLayout } from "../options/table.js";
import { FORMAT, purgeAt } from "../protocol/row.js";
import type { Claim, Parking, Reissue, Sighting, Stamped, Take, Terms } from "../store.js";
import { IS_EXACTLY, IS_MINE, IS_MINE_AND_EARLIER, isFree } from "./conditions.js";
import { marshalledData } from "./data.js";
import { type Item, itemOf, keyOf, number } from "./items.js";

const FORMAT_VALUE = number(FORMAT);
const ZERO = number(0);
const ONE = number(1);
const STRING = { S: "S" };
const NUMBER = { S: "N" };

/** A holder's next token; its row has one already. */
const NEXT_FENCE: Clause = { expression: "#fence = #fence + :one", values: { ":one": ONE } };

/** A renewal, as the port gives it. */
export interface RenewalInput {
  readonly name: string;
  readonly uuid: string;
  readonly expires: number;
  readonly data?: LockData | undefined;
  readonly ticked?: boolean | undefined;
}

/** What a holder stamps, as the port gives it. */
interface Lease {
  readonly expires: number;
  /** The row carries a `tick`, which no purge date may end. */
  readonly ticked?: boolean | undefined;
}

/** What an update does to a row: each attribute once. */
interface Change {
  readonly set?: Readonly<Record<string, AttributeValue>>;
  /** What is more to set than a value. */
  readonly also?: readonly Clause[];
  readonly remove?: readonly string[];
}

interface Clause {
  readonly expression: string;
  readonly values: Item;
}

/** The expressions of one request and the attributes that they name: the same for every lock, so made once. */
interface Plan {
  readonly ConditionExpression: string;
  readonly UpdateExpression?: string;
  readonly ExpressionAttributeNames: Record<string, string>;
}

/** What is sent for each operation of the port, on a table of this layout. */
export class Requests {
  readonly #layout: TableLayout;
  /** By condition and by update. */
  readonly #plans = new Map<string, Map<string | undefined, Plan>>();

  constructor(layout: TableLayout) {
    this.#layout = layout;
  }

  get(name: string, consistent: boolean): GetItemCommandInput {
    return { TableName: this.#layout.tableName, Key: keyOf(this.#layout, name), ConsistentRead: consistent };
  }

  /** The take that writes the whole item. */
  put(claim: Claim, terms: Terms): PutItemCommandInput {
    return {
      TableName: this.#layout.tableName,
      Item: itemOf(this.#layout, claim),
      ...this.#plan(isFree(terms, undefined)),
      ExpressionAttributeValues: freeValues(terms),
      ReturnValues: "ALL_OLD",
      ReturnValuesOnConditionCheckFailure: "ALL_OLD",
    };
  }

  /** The take that leaves in place what the row remembers. */
  takeKept(claim: Claim, terms: Terms): UpdateItemCommandInput {
    const { data, tick, fenceSeed } = claim;
    const lease = leaseOf({ expires: claim.expires, ticked: terms.ticked });
    const set = {
      ...lease.set,
      format: FORMAT_VALUE,
      uuid: { S: claim.uuid },
      ttlMs: number(claim.ttlMs),
      owner: { S: claim.owner },
      acquired: number(claim.acquired),
      ...dataOf(data),
      ...(tick === undefined ? {} : { tick: number(tick) }),
    };
    const remove = [...lease.remove, "wanted", ...(data === undefined ? ["data"] : [])];
    const also = fenceSeed === undefined ? [] : [firstFence(fenceSeed)];
    const update = this.#update(claim.name, isFree(terms, tick), freeValues(terms), { set, also, remove });
    return { ...update, ReturnValues: "ALL_OLD" };
  }

  /** Either take, as a part of a transaction. */
  takeItem({ claim, terms }: Take): TransactWriteItem {
    if (terms.kept) {
      const { ReturnValues: _, ...update } = this.takeKept(claim, terms);
      return { Update: { UpdateExpression: "", ...update } };
    }
    const { ReturnValues: _, ...put } = this.put(claim, terms);
    return { Put: put };
  }

  renew({ name, uuid, expires, data, ticked }: RenewalInput): UpdateItemCommandInput {
    const { set, remove } = leaseOf({ expires, ticked });
    return this.#update(name, IS_MINE_AND_EARLIER, mine(uuid), { set: { ...set, ...dataOf(data) }, remove });
  }

  restamp(name: string, from: Stamped, to: Stamped & Lease): UpdateItemCommandInput {
    const { set, remove } = leaseOf(to);
    const condition = { ":format": FORMAT_VALUE, ...seenValues(from) };
    return this.#update(name, IS_EXACTLY, condition, { set: { ...set, uuid: { S: to.uuid } }, remove });
  }

  reissue({ name, from, to, fenced, ticked }: Reissue): UpdateItemCommandInput {
    const { set, remove } = leaseOf({ expires: to.expires, ticked });
    const freshUuid = { expression: "#uuid = :newUuid", values: { ":newUuid": { S: to.uuid } } };
    const also = fenced ? [freshUuid, NEXT_FENCE] : [freshUuid];
    const update = this.#update(name, IS_MINE_AND_EARLIER, mine(from), { set, also, remove });
    return { ...update, ReturnValues: "UPDATED_NEW" };
  }

  delete(name: string, uuid: string): DeleteItemCommandInput {
    return {
      TableName: this.#layout.tableName,
      Key: keyOf(this.#layout, name),
      ...this.#plan(IS_MINE),
      ExpressionAttributeValues: mine(uuid),
      ReturnValuesOnConditionCheckFailure: "ALL_OLD",
    };
  }

  /** The release of a row that stays for what it remembers. */
  free(name: string, uuid: string): UpdateItemCommandInput {
    return this.#update(name, IS_MINE, mine(uuid), { set: { expires: ZERO }, remove: ["uuid", "wanted"] });
  }

  /** The release of a row that stays taken for a while. */
  park(name: string, uuid: string, { expires, ttlMs, ticked }: Parking & Lease): UpdateItemCommandInput {
    const { set, remove } = leaseOf({ expires, ticked });
    return this.#update(name, IS_MINE, mine(uuid), {
      set: { ...set, ttlMs: number(ttlMs) },
      remove: [...remove, "uuid", "wanted"],
    });
  }

  /** A waiter's mark on the row of a holder, whose uuid it names. */
  want(name: string, uuid: string, until: number): UpdateItemCommandInput {
    return this.#update(name, IS_MINE, mine(uuid), { set: { wanted: number(until) } });
  }

  /** Takes the uuid of a holder off its row, and leaves the rest: nobody enters before the lease ends. */
  force(name: string, uuid: string): UpdateItemCommandInput {
    return this.#update(name, IS_MINE, mine(uuid), { remove: ["uuid"] });
  }

  /** A value that a condition compares with and an update sets is one value: both call it by the attribute's name. */
  #update(name: string, condition: string, values: Item, change: Change): UpdateItemCommandInput {
    const { set = {}, also = [], remove = [] } = change;
    const attributes = Object.keys(set);
    const setting = [
      ...attributes.map((attribute) => `#${attribute} = :${attribute}`),
      ...also.map(({ expression }) => expression),
    ];
    const removing = remove.map((attribute) => `#${attribute}`);
    const actions = [
      ...(setting.length === 0 ? [] : [`SET ${setting.join(", ")}`]),
      ...(removing.length === 0 ? [] : [`REMOVE ${removing.join(", ")}`]),
    ];
    return {
      TableName: this.#layout.tableName,
      Key: keyOf(this.#layout, name),
      ...this.#plan(condition, actions.join(" ")),
      ExpressionAttributeValues: Object.assign(
        { ...values },
        ...attributes.map((attribute) => ({ [`:${attribute}`]: set[attribute] })),
        ...also.map((clause) => clause.values),
      ),
      ReturnValuesOnConditionCheckFailure: "ALL_OLD",
    };
  }

  #plan(condition: string, update?: string): Plan {
    let plans = this.#plans.get(condition);
    if (plans === undefined) {
      plans = new Map();
      this.#plans.set(condition, plans);
    }
    let plan = plans.get(update);
    if (plan === undefined) {
      plan = planOf(this.#layout, condition, update);
      plans.set(update, plan);
    }
    return plan;
  }
}

function planOf(layout: TableLayout, condition: string, update: string | undefined): Plan {
  // DynamoDB refuses a name that no expression uses.
  const words = `${condition} ${update ?? ""}`.match(/#\w+/g) ?? [];
  return {
    ConditionExpression: condition,
    ...(update === undefined ? {} : { UpdateExpression: update }),
    ExpressionAttributeNames: Object.fromEntries(words.map((word) => [word, attributeOf(layout, word.slice(1))])),
  };
}

function attributeOf(layout: TableLayout, word: string): string {
  if (word === "name") return layout.partition;
  return word === "purge" ? layout.ttl : word;
}

function freeValues({ earliest, unchanged }: Terms): Item {
  return {
    ":format": FORMAT_VALUE,
    ":earliest": number(earliest),
    ":string": STRING,
    ":number": NUMBER,
    ...(unchanged === undefined ? {} : seenValues(unchanged)),
  };
}

function seenValues({ uuid, expires }: Sighting): Item {
  return { ...(uuid === undefined ? {} : { ":seenUuid": { S: uuid } }), ":seenExpires": number(expires) };
}

function mine(uuid: string): Item {
  return { ":format": FORMAT_VALUE, ":uuid": { S: uuid } };
}

/** A stamp, and with it the date of the purge, which a row with a `tick` must not have. */
function leaseOf({ expires, ticked }: Lease): Required<Omit<Change, "also">> {
  if (ticked === true) return { set: { expires: number(expires) }, remove: ["purge"] };
  return { set: { expires: number(expires), purge: number(purgeAt(expires)) }, remove: [] };
}

/** The first token of a name is later than every one before it, should its row have been deleted: time has gone on. */
function firstFence(seed: number): Clause {
  return { expression: "#fence = if_not_exists(#fence, :seed) + :one", values: { ":seed": number(seed), ":one": ONE } };
}

function dataOf(data: LockData | undefined): Item {
  return data === undefined ? {} : { data: marshalledData(data) };
}
