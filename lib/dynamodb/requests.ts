import type {
  DeleteItemCommandInput,
  GetItemCommandInput,
  PutItemCommandInput,
  UpdateItemCommandInput,
} from "@aws-sdk/client-dynamodb";
import type { LockData } from "../lock-info.js";
import type { TableLayout } from "../options.js";
import { FORMAT, purgeAt } from "../row.js";
import type { Claim, Reissue, Sighting, Terms } from "../store.js";
import { IS_EXACTLY, IS_FREE, IS_MINE, IS_MINE_AND_EARLIER } from "./conditions.js";
import { marshalledData } from "./data.js";
import { type Item, itemOf, keyOf, number } from "./items.js";

const SET_LEASE = "SET #expires = :expires, #purge = :purge";
const SET_CLAIM = `${SET_LEASE}, #format = :format, #uuid = :uuid, #ttlMs = :ttlMs, #owner = :owner, #acquired = :acquired`;
/** The first token of a name is later than every one before it, should its row have been deleted: time has gone on. */
const SET_FIRST_FENCE = "#fence = if_not_exists(#fence, :seed) + :one";
const SET_NEXT_FENCE = "#fence = #fence + :one";
const UPDATES = {
  claim: `${SET_CLAIM} REMOVE #wanted, #data`,
  claimWithData: `${SET_CLAIM}, #data = :data REMOVE #wanted`,
  claimFenced: `${SET_CLAIM}, ${SET_FIRST_FENCE} REMOVE #wanted, #data`,
  claimFencedWithData: `${SET_CLAIM}, ${SET_FIRST_FENCE}, #data = :data REMOVE #wanted`,
  renew: SET_LEASE,
  renewWithData: `${SET_LEASE}, #data = :data`,
  restamp: `${SET_LEASE}, #uuid = :uuid`,
  reissue: `${SET_LEASE}, #uuid = :newUuid`,
  reissueFenced: `${SET_LEASE}, #uuid = :newUuid, ${SET_NEXT_FENCE}`,
  free: "SET #expires = :zero REMOVE #uuid, #wanted",
  want: "SET #wanted = :wanted",
};

const FORMAT_VALUE = number(FORMAT);
const ZERO = number(0);
const ONE = number(1);
const STRING = { S: "S" };
const NUMBER = { S: "N" };

/** A renewal, as the port gives it. */
export interface RenewalInput {
  readonly name: string;
  readonly uuid: string;
  readonly expires: number;
  readonly data?: LockData | undefined;
}

type ClaimUpdate = "claim" | "claimWithData" | "claimFenced" | "claimFencedWithData";

/** The expressions of one request and the attributes that they name: the same for every lock, so made once. */
interface Plan {
  readonly ConditionExpression: string;
  readonly UpdateExpression?: string;
  readonly ExpressionAttributeNames: Record<string, string>;
}

/** What is sent for each operation of the port, on a table of this layout. */
export class Requests {
  readonly #layout: TableLayout;
  readonly #put: Plan;
  readonly #putUnchanged: Plan;
  readonly #plans: Readonly<Record<"free" | "freeUnchanged", Readonly<Record<ClaimUpdate, Plan>>>>;
  readonly #renew: Plan;
  readonly #renewWithData: Plan;
  readonly #restamp: Plan;
  readonly #reissue: Plan;
  readonly #reissueFenced: Plan;
  readonly #delete: Plan;
  readonly #free: Plan;
  readonly #want: Plan;

  constructor(layout: TableLayout) {
    this.#layout = layout;
    const plan = (condition: string, update?: keyof typeof UPDATES): Plan => planOf(layout, condition, update);
    this.#put = plan(IS_FREE.put);
    this.#putUnchanged = plan(IS_FREE.putUnchanged);
    const plansOn = (condition: string): Readonly<Record<ClaimUpdate, Plan>> => ({
      claim: plan(condition, "claim"),
      claimWithData: plan(condition, "claimWithData"),
      claimFenced: plan(condition, "claimFenced"),
      claimFencedWithData: plan(condition, "claimFencedWithData"),
    });
    this.#plans = { free: plansOn(IS_FREE.update), freeUnchanged: plansOn(IS_FREE.updateUnchanged) };
    this.#renew = plan(IS_MINE_AND_EARLIER, "renew");
    this.#renewWithData = plan(IS_MINE_AND_EARLIER, "renewWithData");
    this.#restamp = plan(IS_EXACTLY, "restamp");
    this.#reissue = plan(IS_MINE_AND_EARLIER, "reissue");
    this.#reissueFenced = plan(IS_MINE_AND_EARLIER, "reissueFenced");
    this.#delete = plan(IS_MINE);
    this.#free = plan(IS_MINE, "free");
    this.#want = plan(IS_MINE, "want");
  }

  get(name: string, consistent: boolean): GetItemCommandInput {
    return { TableName: this.#layout.tableName, Key: keyOf(this.#layout, name), ConsistentRead: consistent };
  }

  /** The take that writes the whole item. */
  put(claim: Claim, terms: Terms): PutItemCommandInput {
    return {
      TableName: this.#layout.tableName,
      Item: itemOf(this.#layout, claim),
      ...(terms.unchanged === undefined ? this.#put : this.#putUnchanged),
      ExpressionAttributeValues: freeValues(terms),
      ReturnValues: "ALL_OLD",
      ReturnValuesOnConditionCheckFailure: "ALL_OLD",
    };
  }

  /** The take that leaves in place what the row remembers. */
  takeKept(claim: Claim, terms: Terms): UpdateItemCommandInput {
    const plans = this.#plans[terms.unchanged === undefined ? "free" : "freeUnchanged"];
    const update = this.#update(claim.name, plans[updateOf(claim)], {
      ...freeValues(terms),
      ...leaseValues(claim.expires),
      ":uuid": { S: claim.uuid },
      ":ttlMs": number(claim.ttlMs),
      ":owner": { S: claim.owner },
      ":acquired": number(claim.acquired),
      ...dataValues(claim.data),
      ...(claim.fenceSeed === undefined ? {} : { ":seed": number(claim.fenceSeed), ":one": ONE }),
    });
    return { ...update, ReturnValues: "ALL_OLD" };
  }

  renew({ name, uuid, expires, data }: RenewalInput): UpdateItemCommandInput {
    return this.#update(name, data === undefined ? this.#renew : this.#renewWithData, {
      ":format": FORMAT_VALUE,
      ":uuid": { S: uuid },
      ...leaseValues(expires),
      ...dataValues(data),
    });
  }

  restamp(name: string, from: Sighting, to: Sighting): UpdateItemCommandInput {
    return this.#update(name, this.#restamp, {
      ":format": FORMAT_VALUE,
      ...seenValues(from),
      ":uuid": { S: to.uuid },
      ...leaseValues(to.expires),
    });
  }

  reissue({ name, from, to, fenced }: Reissue): UpdateItemCommandInput {
    const update = this.#update(name, fenced ? this.#reissueFenced : this.#reissue, {
      ":format": FORMAT_VALUE,
      ":uuid": { S: from },
      ":newUuid": { S: to.uuid },
      ...leaseValues(to.expires),
      ...(fenced ? { ":one": ONE } : {}),
    });
    return { ...update, ReturnValues: "UPDATED_NEW" };
  }

  delete(name: string, uuid: string): DeleteItemCommandInput {
    return {
      TableName: this.#layout.tableName,
      Key: keyOf(this.#layout, name),
      ...this.#delete,
      ExpressionAttributeValues: { ":format": FORMAT_VALUE, ":uuid": { S: uuid } },
      ReturnValuesOnConditionCheckFailure: "ALL_OLD",
    };
  }

  /** The release of a row that stays for what it remembers. */
  free(name: string, uuid: string): UpdateItemCommandInput {
    return this.#update(name, this.#free, { ":format": FORMAT_VALUE, ":uuid": { S: uuid }, ":zero": ZERO });
  }

  /** A waiter's mark on the row of a holder, whose uuid it names. */
  want(name: string, uuid: string, until: number): UpdateItemCommandInput {
    const values = { ":format": FORMAT_VALUE, ":uuid": { S: uuid }, ":wanted": number(until) };
    return this.#update(name, this.#want, values);
  }

  #update(name: string, plan: Plan, values: Item): UpdateItemCommandInput {
    return {
      TableName: this.#layout.tableName,
      Key: keyOf(this.#layout, name),
      ...plan,
      ExpressionAttributeValues: values,
      ReturnValuesOnConditionCheckFailure: "ALL_OLD",
    };
  }
}

function planOf(layout: TableLayout, condition: string, update?: keyof typeof UPDATES): Plan {
  const UpdateExpression = update === undefined ? undefined : UPDATES[update];
  // DynamoDB refuses a name that no expression uses.
  const words = `${condition} ${UpdateExpression ?? ""}`.match(/#\w+/g) ?? [];
  return {
    ConditionExpression: condition,
    ...(UpdateExpression === undefined ? {} : { UpdateExpression }),
    ExpressionAttributeNames: Object.fromEntries(words.map((word) => [word, attributeOf(layout, word.slice(1))])),
  };
}

function attributeOf(layout: TableLayout, word: string): string {
  if (word === "name") return layout.partition;
  return word === "purge" ? layout.ttl : word;
}

function updateOf({ data, fenceSeed }: Claim): ClaimUpdate {
  if (fenceSeed === undefined) return data === undefined ? "claim" : "claimWithData";
  return data === undefined ? "claimFenced" : "claimFencedWithData";
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
  return { ":seenUuid": { S: uuid }, ":seenExpires": number(expires) };
}

function leaseValues(expires: number): Item {
  return { ":expires": number(expires), ":purge": number(purgeAt(expires)) };
}

function dataValues(data: LockData | undefined): Item {
  return data === undefined ? {} : { ":data": marshalledData(data) };
}
