import {
  DeleteItemCommand,
  type DynamoDBClient,
  type DynamoDBClientConfig,
  GetItemCommand,
  PutItemCommand,
  QueryCommand,
} from "@aws-sdk/client-dynamodb";
import { marshall, unmarshall } from "@aws-sdk/util-dynamodb";
import { afterEach, beforeAll, beforeEach } from "@jest/globals";
import { LockTable, type LockTableOptions } from "../../lib/index.js";
import type { LockOptions } from "../../lib/options/calls.js";
import { startPatience, turn } from "./eventually.js";
import { type FaultProxy, type RecordedRequest, startFaultProxy } from "./fault-proxy.js";
import { ManualTime } from "./manual-time.js";
import { createTestTable, testClient, testEndpoint } from "./table.js";

/** A row as plain values. */
export type Attributes = Readonly<Record<string, unknown>>;

export interface HostOptions extends Partial<LockTableOptions> {
  /** The tag of its requests on the proxy. */
  readonly tag?: string;
  /** How its client differs from one that tries everything once. */
  readonly sdk?: DynamoDBClientConfig;
}

/** How the proxy of a scene is made. */
type Network = Omit<Parameters<typeof startFaultProxy>[0], "target">;

/** Faults after which nothing comes. */
const SILENT = new Set(["partition", "hang", "hangAfter", "dead connection"]);

/** A table, a network that fails on demand, and a lock's name that is each test's own. */
export class Scene {
  tableName = "";
  name = "";
  #proxy: FaultProxy | undefined;
  #tests = 0;
  readonly #direct: DynamoDBClient = testClient();
  readonly #tables: LockTable[] = [];
  readonly #network: Network;

  constructor(network: Network = {}) {
    this.#network = network;
  }

  get proxy(): FaultProxy {
    if (this.#proxy === undefined) throw new Error("There is a proxy in tests only");
    return this.#proxy;
  }

  /** A process's `LockTable`, as far as one process can play several: with a client of its own, behind the proxy. */
  host({ tag = "", sdk = {}, ...options }: HostOptions = {}): LockTable {
    const locks = new LockTable({ tableName: this.tableName, client: this.client(tag, sdk), ...options });
    // What runs on a test's own clock may never end once the test has.
    if (options.clock === undefined) this.#tables.push(locks);
    return locks;
  }

  /** A lock of a host on a time that the test moves. */
  async locked(options: HostOptions = {}, call: LockOptions = {}) {
    const time = new ManualTime();
    const mutex = this.host({ clock: time.clock(), ...options }).mutex(this.name);
    return { time, mutex, lock: await mutex.lock(call) };
  }

  client(tag = "", config: DynamoDBClientConfig = {}): DynamoDBClient {
    return testClient({ endpoint: this.proxy.endpointFor(tag), maxAttempts: 1, ...config });
  }

  /** The row as the table has it, past the proxy. */
  async row(name: string = this.name): Promise<Attributes | undefined> {
    const { Item } = await this.#direct.send(
      new GetItemCommand({ TableName: this.tableName, Key: key(name), ConsistentRead: true }),
    );
    return Item && unmarshall(Item);
  }

  /** Puts a row past the proxy, whatever is there. */
  async put(attributes: Attributes, name: string = this.name): Promise<void> {
    const Item = { ...key(name), ...marshall(attributes) };
    await this.#direct.send(new PutItemCommand({ TableName: this.tableName, Item }));
  }

  /** Deletes the row past the proxy. */
  async remove(name: string = this.name): Promise<void> {
    await this.#direct.send(new DeleteItemCommand({ TableName: this.tableName, Key: key(name) }));
  }

  /**
   * Lets time pass in small steps until the condition holds. Whatever a step sets in motion gets its answers before
   * the next, unless the network is silent.
   */
  async play(time: ManualTime, until: () => boolean, stepMs = 25): Promise<void> {
    const patience = startPatience(until);
    while (!until()) {
      patience.check();
      await time.advance(stepMs);
      await this.quiet();
    }
  }

  /** Resolves when no request is under way but those that get no answer. */
  async quiet(): Promise<void> {
    const isOpen = ({ ending, fault }: RecordedRequest) => ending === undefined && !SILENT.has(fault ?? "");
    let seen = -1;
    while (seen !== this.proxy.requests.length) {
      seen = this.proxy.requests.length;
      await this.proxy.until((requests) => !requests.some(isOpen));
      await turn();
    }
  }

  /** @internal */
  async create(): Promise<void> {
    this.tableName = await createTestTable();
    // The first of each kind can take DynamoDB Local so long that a lock would send it again.
    await this.put({}, "warm-up");
    await this.row("warm-up");
    const query = { KeyConditionExpression: "#n = :n", ExpressionAttributeNames: { "#n": "name" } };
    const values = { ":n": { S: "warm-up" } };
    await this.#direct.send(
      new QueryCommand({ TableName: this.tableName, ...query, ExpressionAttributeValues: values }),
    );
    await this.remove("warm-up");
  }

  /** @internal */
  async begin(): Promise<void> {
    this.#tests += 1;
    this.name = `lock-${this.#tests}`;
    this.#proxy = await startFaultProxy({ target: testEndpoint(), ...this.#network });
  }

  /** @internal */
  async end(): Promise<void> {
    this.proxy.heal();
    const closing = Promise.allSettled(this.#tables.splice(0).map((locks) => locks.close({ drainMs: 0 })));
    // Locks that a test has left or lost are none of its end's business: nobody waits for their sections.
    await Promise.race([closing, this.quiet()]);
    await this.proxy.close();
  }
}

/** A scene for all the tests of a file. */
export function useScene(network: Network = {}): Scene {
  const scene = new Scene(network);
  beforeAll(() => scene.create());
  beforeEach(() => scene.begin());
  afterEach(() => scene.end());
  return scene;
}

/** A row that somebody else holds, until told otherwise for 30 s from the host's now. */
export function rowOf(attributes: Attributes = {}): Attributes {
  const now = Date.now();
  return {
    format: 1,
    uuid: "somebody-else",
    expires: now + 30_000,
    ttlMs: 30_000,
    owner: "elsewhere#1",
    acquired: now,
    purge: Math.ceil(now / 1_000) + 604_800,
    ...attributes,
  };
}

function key(name: string) {
  return { name: { S: name }, sort: { S: "lock" } };
}
