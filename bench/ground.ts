/// <reference lib="esnext.disposable" preserve="true" />
import { CreateTableCommand, DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { type FaultProxy, type RecordedRequest, startFaultProxy } from "../__tests__/support/fault-proxy.js";
import { tableInput } from "../__tests__/support/table-input.js";
import { type DynamoDbLocal, startDynamoDbLocal } from "../examples/support/dynamodb-local.js";
import type { ContenderName } from "./contenders/index.js";
import { LOCAL, type LockerOptions } from "./contenders/locker.js";

/** What a network adds to each request, in ms. */
export const ADDED_MS = 4;

/** What makes a fresh engine as fast as it gets. */
const WARM_CYCLES = 1_000;
const WARM_TASKS = 10;

/** What some requests came to. */
export interface Cost {
  readonly requests: number;
  readonly read: number;
  readonly write: number;
}

/** The engine, the counting proxy before it, and a table for every contender. */
export class Ground implements AsyncDisposable {
  readonly proxy: FaultProxy;
  readonly #engine: DynamoDbLocal;
  readonly #client: DynamoDBClient;
  readonly #tables = new Map<string, Promise<string>>();
  #names = 0;

  private constructor(engine: DynamoDbLocal, proxy: FaultProxy) {
    this.#engine = engine;
    this.proxy = proxy;
    this.#client = new DynamoDBClient({ ...LOCAL, endpoint: engine.endpoint });
  }

  static async start(): Promise<Ground> {
    process.env.AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED = "true";
    const engine = await startDynamoDbLocal();
    const ground = new Ground(engine, await startFaultProxy({ target: engine.endpoint }));
    await ground.#warmUp();
    ground.proxy.latencyMs = ADDED_MS;
    return ground;
  }

  /** A name that no lock had before. */
  name(): string {
    this.#names += 1;
    return `lock-${this.#names}`;
  }

  /** @param tag tells this process's requests from others'; without one it goes past the proxy. */
  async options(contender: ContenderName, leaseMs: number, tag: string | undefined): Promise<LockerOptions> {
    const endpoint = tag === undefined ? this.#engine.endpoint : this.proxy.endpointFor(tag);
    return { endpoint, tableName: await this.#table(contender), leaseMs };
  }

  /** The requests that arrived in a span of time, as `now()` has it. */
  requests({ tag, from = 0, to = Number.POSITIVE_INFINITY }: Span): readonly RecordedRequest[] {
    return this.proxy.select(
      ({ client, arrivedAt }) => (tag === undefined || client === tag) && arrivedAt >= from && arrivedAt < to,
    );
  }

  cost(span: Span): Cost {
    const requests = this.requests(span);
    const sum = (unit: "read" | "write"): number => requests.reduce((total, { units }) => total + units[unit], 0);
    return { requests: requests.length, read: sum("read"), write: sum("write") };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#client.destroy();
    await this.proxy.close();
    await this.#engine.stop();
  }

  /** A fresh engine is slow until its code has run often enough, and whoever comes first would pay for it. */
  async #warmUp(): Promise<void> {
    const { openRaw } = await import("./contenders/raw.js");
    const locker = await openRaw({
      endpoint: this.proxy.endpoint,
      tableName: await this.#table("raw"),
      leaseMs: 30_000,
    });
    const cycles = async (_: unknown, task: number): Promise<void> => {
      for (let cycle = 0; cycle < WARM_CYCLES / WARM_TASKS; cycle++) await (await locker.lock(`warm-${task}`))();
    };
    await Promise.all(Array.from({ length: WARM_TASKS }, cycles));
    await locker.close();
    this.proxy.reset();
  }

  #table(contender: ContenderName): Promise<string> {
    const existing = this.#tables.get(contender);
    if (existing !== undefined) return existing;
    const made = this.#create(`bench-${contender}`);
    this.#tables.set(contender, made);
    return made;
  }

  async #create(TableName: string): Promise<string> {
    await this.#client.send(new CreateTableCommand(tableInput(TableName)));
    return TableName;
  }
}

export interface Span {
  readonly tag?: string;
  readonly from?: number;
  readonly to?: number;
}
