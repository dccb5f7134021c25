import type { DynamoDBClient, TableDescription, TimeToLiveDescription } from "@aws-sdk/client-dynamodb";
import { DescribeTableCommand, DescribeTimeToLiveCommand } from "@aws-sdk/client-dynamodb";
import { LockStoreError } from "../../errors.js";
import type { TableLayout } from "../../options/table.js";
import type { Requests } from "../../session/requests.js";
import { AdminRequests } from "./admin-requests.js";

/** What `create()` and `check()` ask DynamoDB of a table as a whole. */
export class ControlPlane extends AdminRequests {
  readonly client: DynamoDBClient;
  readonly #tableName: string;

  constructor(
    client: DynamoDBClient,
    { tableName }: TableLayout,
    requests: Requests,
    bounds: { readonly signal: AbortSignal | undefined; readonly timeoutMs: number },
  ) {
    super({ tableName, requests, ...bounds });
    this.client = client;
    this.#tableName = tableName;
  }

  async describeTable(): Promise<TableDescription | undefined> {
    const command = new DescribeTableCommand({ TableName: this.#tableName });
    return (await this.ask("DescribeTable", (abortSignal) => this.client.send(command, { abortSignal }))).Table;
  }

  async describeTtl(): Promise<TimeToLiveDescription | undefined> {
    const command = new DescribeTimeToLiveCommand({ TableName: this.#tableName });
    const reply = await this.ask("DescribeTimeToLive", (abortSignal) => this.client.send(command, { abortSignal }));
    return reply.TimeToLiveDescription;
  }
}

/** Whether DynamoDB refused a request with one of these errors. */
export function isCausedBy(error: unknown, ...names: readonly string[]): boolean {
  return error instanceof LockStoreError && names.includes((error.cause as Partial<Error> | undefined)?.name ?? "");
}
