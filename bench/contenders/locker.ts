/** What the bench asks of a lock, whoever made it. */
export interface Locker {
  /** Waits for the lock; the answer releases it. */
  lock(name: string): Promise<() => Promise<void>>;
  close(): Promise<void>;
  /** How many requests there were, where no proxy counts them. */
  requests?(): number;
}

/** Where a contender's locks are, and how long its leases last. */
export interface LockerOptions {
  readonly endpoint: string;
  readonly tableName: string;
  readonly leaseMs: number;
  /** For polling alone: the longest and the shortest pause of a waiter. */
  readonly poll?: { readonly minMs: number; readonly maxMs: number };
  /** For this library alone: how many permits there are, where a semaphore takes the place of a mutex. */
  readonly permits?: number;
  /** For this library alone: which side of a shared mutex takes the place of a mutex. */
  readonly side?: "shared" | "exclusive";
  /** By how much the host's clock is wrong, for contenders that trust none. */
  readonly clockWrongByMs?: number;
}

/** The credentials that DynamoDB Local takes: any. */
export const LOCAL: {
  readonly region: string;
  readonly credentials: { readonly accessKeyId: string; readonly secretAccessKey: string };
} = { region: "us-east-1", credentials: { accessKeyId: "bench", secretAccessKey: "bench" } };

/** The client of everybody who is given one for version 3 of the SDK: its times are bounded, and it tries everything once. */
export function clientConfig(endpoint: string): object {
  const agent = { keepAlive: true, maxSockets: 128 };
  return {
    ...LOCAL,
    endpoint,
    maxAttempts: 1,
    requestHandler: {
      connectionTimeout: 1_500,
      requestTimeout: 5_000,
      throwOnRequestTimeout: true,
      socketTimeout: 5_000,
      httpAgent: agent,
      httpsAgent: agent,
    },
  };
}
