import type { DynamoDBClient, TableDescription, TimeToLiveDescription } from "@aws-sdk/client-dynamodb";
import { DescribeTableCommand, DescribeTimeToLiveCommand } from "@aws-sdk/client-dynamodb";
import { LockStoreError } from "../../errors.js";
import { AdminRequests, type AdminRequestsOptions } from "./admin-requests.js";

/** What `create()` and `check()` ask DynamoDB of a table as a whole. */
export class ControlPlane extends AdminRequests {
  readonly client: DynamoDBClient;

  constructor(client: DynamoDBClient, options: AdminRequestsOptions) {
    super(options);
    this.client = client;
  }

  async describeTable(): Promise<TableDescription | undefined> {
    const command = new DescribeTableCommand({ TableName: this.tableName });
    return (await this.ask("DescribeTable", (abortSignal) => this.client.send(command, { abortSignal }))).Table;
  }

  async describeTtl(): Promise<TimeToLiveDescription | undefined> {
    const command = new DescribeTimeToLiveCommand({ TableName: this.tableName });
    const reply = await this.ask("DescribeTimeToLive", (abortSignal) => this.client.send(command, { abortSignal }));
    return reply.TimeToLiveDescription;
  }
}

/** Whether the endpoint is an engine that does not have the operation that was asked of it. */
export const isNotImplemented = (error: unknown): boolean => isCausedBy(error, "UnknownOperationException");

/** Whether DynamoDB refused a request with one of these errors. */
export function isCausedBy(error: unknown, ...names: readonly string[]): boolean {
  return error instanceof LockStoreError && names.includes((error.cause as Partial<Error> | undefined)?.name ?? "");
}
