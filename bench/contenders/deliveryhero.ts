import { clientConfig, type Locker, type LockerOptions } from "./locker.js";
import { requirePeer } from "./peers.js";

interface LockClient {
  lock(group: string, id: string, options: object): Promise<object>;
  releaseLock(lock: object): Promise<void>;
}

/** What a waiter sleeps between two looks: a third of the cost of 33 ms, and as much more to wait. */
const LOOK_EVERY_MS = 100;

/** `@deliveryhero/dynamodb-lock`, which looks at what is in the way at a fixed pace if it may trust the host's clock. */
export async function openDeliveryHero({ endpoint, tableName, leaseMs }: LockerOptions): Promise<Locker> {
  const { DynamoDBClient } = requirePeer("@aws-sdk/client-dynamodb");
  const { DynamoDBDocument } = requirePeer("@aws-sdk/lib-dynamodb");
  const { dynamoDBLockClientFactory } = requirePeer("@deliveryhero/dynamodb-lock");
  // A renewal of it that fails is a rejection that nobody handles, which would end the process and its other locks with it.
  process.on("unhandledRejection", () => undefined);
  const document = DynamoDBDocument.from(new DynamoDBClient(clientConfig(endpoint)));
  const table = { tableName, partitionKey: "name", sortKey: "sort" };
  const locks: LockClient = dynamoDBLockClientFactory(document, table);
  const options = {
    leaseDurationInMs: leaseMs,
    prolongLeaseEnabled: true,
    prolongEveryMs: Math.floor(leaseMs / 2) - 1,
    trustLocalTime: true,
    waitDurationInMs: LOOK_EVERY_MS,
  };
  return {
    async lock(name) {
      const lock = await locks.lock("bench", name, options);
      return () => locks.releaseLock(lock);
    },
    async close() {
      document.destroy();
    },
  };
}
