import { checkTable } from "./dynamodb/admin/check-table.js";
import { createTable } from "./dynamodb/admin/create-table.js";
import { defaultClient } from "./dynamodb/default-client.js";
import { DynamoDbStore } from "./dynamodb/store.js";
import { Transport } from "./dynamodb/transport.js";
import { TableLocks } from "./table-locks.js";
export class LockTable extends TableLocks {
    constructor(options) {
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
