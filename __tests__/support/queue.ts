import { DeleteItemCommand, type DynamoDBClient, QueryCommand } from "@aws-sdk/client-dynamodb";
import { marshall, unmarshall } from "@aws-sdk/util-dynamodb";
import type { RecordedRequest } from "./fault-proxy.js";
import type { ManualTime } from "./manual-time.js";
import type { Scene } from "./scene.js";
import { testClient } from "./table.js";

/** A row of a lock's queue, as far as tests look at it. */
export interface QueueRow {
  readonly sort: string;
  readonly uuid: string;
  readonly owner: string;
  readonly expires: number;
  readonly data: Readonly<Record<string, unknown>>;
}

/** A ticket's sort key. */
export function sortOf(ticket: number | bigint): string {
  return `queue#${`${ticket}`.padStart(38, "0")}`;
}

/** The rows beside a lock's own, past the proxy. */
export class QueueRows {
  readonly #scene: Scene;
  readonly #direct: DynamoDBClient = testClient();

  constructor(scene: Scene) {
    this.#scene = scene;
  }

  /** The sort keys of all items of the lock. */
  async sorts(): Promise<string[]> {
    return (await this.#query()).map(({ sort }) => sort);
  }

  /** The waiters in order. */
  async waiters(): Promise<QueueRow[]> {
    return (await this.#query()).filter(({ sort }) => sort.startsWith("queue#"));
  }

  /** Owners in order. */
  async owners(): Promise<string[]> {
    return (await this.waiters()).map(({ owner }) => owner);
  }

  /** A waiter of some other host: for 30 s alive, from this host's now, unless told otherwise. */
  async plant(ticket: number | bigint, attributes: Readonly<Record<string, unknown>> = {}): Promise<void> {
    const now = Date.now();
    const waiter = {
      uuid: `of ${ticket}`,
      owner: `owner ${ticket}`,
      expires: now + 30_000,
      ttlMs: 30_000,
      acquired: now,
    };
    await this.put({ ...waiter, format: 1, sort: sortOf(ticket), ...attributes });
  }

  async put(attributes: Readonly<Record<string, unknown>>): Promise<void> {
    await this.#scene.put(attributes);
  }

  async remove(sort: string): Promise<void> {
    const Key = marshall({ name: this.#scene.name, sort });
    await this.#direct.send(new DeleteItemCommand({ TableName: this.#scene.tableName, Key }));
  }

  async #query(): Promise<QueueRow[]> {
    const { Items = [] } = await this.#direct.send(
      new QueryCommand({
        TableName: this.#scene.tableName,
        KeyConditionExpression: "#name = :name",
        ExpressionAttributeNames: { "#name": "name" },
        ExpressionAttributeValues: { ":name": { S: this.#scene.name } },
        ConsistentRead: true,
      }),
    );
    return Items.map((item) => unmarshall(item) as unknown as QueueRow);
  }
}

/** The sort key that a request is about. */
export function sortIn({ body }: RecordedRequest): string {
  return body.Item?.sort?.S ?? body.Key?.sort?.S ?? "";
}

/** What a request does to the queue. */
export const isDraw = (request: RecordedRequest): boolean => sortIn(request) === "tickets";
export const isEnqueue = (request: RecordedRequest): boolean => isOfQueue(request, "PutItem");
export const isRenewal = (request: RecordedRequest): boolean => isOfQueue(request, "UpdateItem");
export const isRemoval = (request: RecordedRequest): boolean => isOfQueue(request, "DeleteItem");

function isOfQueue(request: RecordedRequest, operation: string): boolean {
  return request.operation === operation && sortIn(request).startsWith("queue#");
}

/** Requests for the lock's own row. */
export const isTake = (request: RecordedRequest): boolean =>
  request.operation === "PutItem" && sortIn(request) === "lock";

/** Whether this client's last place has its row, and it has looked at the queue since. */
export function stands(requests: readonly RecordedRequest[], client: string): boolean {
  const own = requests.filter((request) => request.client === client);
  const row = own.findLast((request) => isEnqueue(request) && request.table?.status === 200);
  if (row === undefined) return false;
  return own.some(
    ({ operation, arrivedAt, ending }) => operation === "Query" && arrivedAt > row.arrivedAt && ending !== undefined,
  );
}

/** Resolves once that is so: by itself, or as time passes. */
export async function untilStanding(scene: Scene, client: string, time?: ManualTime): Promise<void> {
  const isStanding = (): boolean => stands(scene.proxy.requests, client);
  await (time === undefined ? scene.proxy.until(isStanding) : scene.play(time, isStanding, 1));
}
