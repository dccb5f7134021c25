/** An attribute value as it travels: JSON, numbers as strings, binary as base64. */
export interface WireValue {
  readonly S?: string;
  readonly N?: string;
  readonly B?: string;
  readonly BOOL?: boolean;
  readonly NULL?: boolean;
  readonly SS?: readonly string[];
  readonly NS?: readonly string[];
  readonly L?: readonly WireValue[];
  readonly M?: WireItem;
}

export type WireItem = Readonly<Record<string, WireValue>>;

/** What a client sends. Only what tests like to look at has a type; the rest is there, as `unknown`. */
export interface WireRequest {
  readonly TableName?: string;
  readonly Key?: WireItem;
  readonly Item?: WireItem;
  readonly ConsistentRead?: boolean;
  readonly KeyConditionExpression?: string;
  readonly ConditionExpression?: string;
  readonly UpdateExpression?: string;
  readonly ExpressionAttributeNames?: Readonly<Record<string, string>>;
  readonly ExpressionAttributeValues?: WireItem;
  readonly ReturnConsumedCapacity?: string;
  readonly ReturnValuesOnConditionCheckFailure?: string;
  readonly TransactItems?: readonly Readonly<Record<string, WireRequest>>[];
  readonly [other: string]: unknown;
}

/** What the table answers, errors too. */
export interface WireReply {
  readonly __type?: string;
  readonly message?: string;
  readonly Message?: string;
  readonly Item?: WireItem;
  readonly Items?: readonly WireItem[];
  readonly Attributes?: WireItem;
  readonly CancellationReasons?: readonly { readonly Code?: string; readonly Item?: WireItem }[];
  readonly [other: string]: unknown;
}

/** The body as an object; empty when it is none, so that a stray request cannot upset the proxy. */
export function parseWire(text: string): WireRequest & WireReply {
  try {
    const parsed: unknown = JSON.parse(text);
    return typeof parsed === "object" && parsed !== null ? (parsed as WireRequest & WireReply) : {};
  } catch {
    return {};
  }
}
