/// <reference lib="esnext.disposable" preserve="true" />
import type { DynamoDBClient } from "@aws-sdk/client-dynamodb";
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
      const transport = new Transport(options.client ?? countedClient(layout.tableName), layout, clock);
      return {
        store: new DynamoDbStore(layout, transport),
        create: (how, requests) => createTable(transport, layout, how, requests),
        check: (how, requests) => checkTable(transport, layout, how, requests),
      };
    });
  }
}

/** A process with so many open tables makes one for each request, or for each lock. */
const MANY = 50;

/** How many clients of the library's own are open. */
let open = 0;
let isWarned = false;

/** A default client, which counts as open until it is destroyed, as `close()` does. Many are warned of once in a process. */
function countedClient(tableName: string): DynamoDBClient {
  const client = defaultClient();
  open += 1;
  if (open === MANY && !isWarned) {
    isWarned = true;
    process.emitWarning(manyOpen(tableName), "DynamutexWarning");
  }
  const destroy = client.destroy.bind(client);
  client.destroy = () => {
    open -= 1;
    client.destroy = destroy;
    destroy();
  };
  return client;
}

function manyOpen(tableName: string): string {
  return (
    `${MANY} LockTables are open in this process, each with connections of its own; the last is for table ${tableName}: make one per ` +
    "table when the process starts, share it, and close() it when the process ends"
  );
}
