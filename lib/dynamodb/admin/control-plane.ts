import {
  DescribeTableCommand,
  type DescribeTableCommandOutput,
  DescribeTimeToLiveCommand,
  type DescribeTimeToLiveCommandOutput,
  type TableDescription,
  type TimeToLiveDescription,
} from "@aws-sdk/client-dynamodb";
import type { AnyCommand } from "../attempts.js";
import type { Transport } from "../transport.js";
import { AdminRequests, type AdminRequestsOptions } from "./admin-requests.js";

/** What `create()` and `check()` ask DynamoDB of a table as a whole. */
export class ControlPlane extends AdminRequests {
  readonly #transport: Transport;

  constructor(transport: Transport, options: AdminRequestsOptions) {
    super(options);
    this.#transport = transport;
  }

  /**
   * @param action its name in IAM.
   * @param make a new command for each attempt.
   * @throws {@link LockStoreError}, or the reason of the caller's signal.
   */
  command(action: string, make: () => AnyCommand): Promise<unknown> {
    return this.ask(action, (signal) => this.#transport.sendCommand(make(), action, signal));
  }

  async describeTable(): Promise<TableDescription | undefined> {
    const make = () => new DescribeTableCommand({ TableName: this.tableName });
    return ((await this.command("DescribeTable", make)) as DescribeTableCommandOutput).Table;
  }

  async describeTtl(): Promise<TimeToLiveDescription | undefined> {
    const make = () => new DescribeTimeToLiveCommand({ TableName: this.tableName });
    const reply = await this.command("DescribeTimeToLive", make);
    return (reply as DescribeTimeToLiveCommandOutput).TimeToLiveDescription;
  }
}
