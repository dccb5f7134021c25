/// <reference lib="esnext.disposable" preserve="true" />
import { checkTable } from "./dynamodb/admin/check-table.js";
import { createTable } from "./dynamodb/admin/create-table.js";
import { defaultClient } from "./dynamodb/default-client.js";
import { DynamoDbStore } from "./dynamodb/store.js";
import { Transport } from "./dynamodb/transport.js";
import type { LockTableOptions } from "./options/table.js";
import { TableLocks } from "./table-locks.js";

/**
 * The locks of one DynamoDB table, as one process uses them. Make one per process and table, and share it.
 *
 * @example
 * await using locks = new LockTable({ tableName: "locks" });
 * const mutex = locks.mutex("nightly-report");
 * await using lock = await mutex.lock();
 */
export class LockTable extends TableLocks {
  /**
   * Sends nothing.
   * @throws {@link LockConfigError} naming the option that cannot work.
   */
  constructor(options: LockTableOptions) {
    super(options, (layout, clock) => {
      const transport = new Transport(options.client ?? defaultClient(), layout, clock);
      return {
        store: new DynamoDbStore(layout, transport),
        create: (how, requests) => createTable(transport, layout, how, requests),
        check: (how, requests) => checkTable(transport, layout, how, requests),
      };
    });
  }
}
