import { randomUUID } from "node:crypto";
import { DynamoDBClient, PutItemCommand } from "@aws-sdk/client-dynamodb";
import { LockTable } from "../../../lib/index.js";
import { testClientConfig } from "../../support/endpoint.js";
import { type FaultProxy, startFaultProxy } from "../../support/fault-proxy.js";
import type { Defect } from "./defects.js";
import type { Engine } from "./engine.js";
import { LOCK_GROUPS, type LockGroup, logsOf } from "./lock-groups.js";
import { linesOf } from "./register.js";
import { crashes, leave, obtainAll } from "./settle.js";
import { Slot } from "./slot.js";
import { type HistoryEvent, violationsIn } from "./violations.js";
import { messagesOf, ofKind } from "./worker-messages.js";

export interface StageOptions {
  readonly engine: Engine;
  readonly hostsPerGroup: number;
  readonly seed: number;
  readonly defect?: Defect | undefined;
  /** Default: all that there are. */
  readonly groups?: readonly LockGroup[] | undefined;
  /** Where the history is written; default: nowhere that stays. */
  readonly file?: string | undefined;
}

/** A new table, a proxy before it, and hosts behind that. */
export class Stage implements AsyncDisposable {
  readonly engine: Engine;
  readonly proxy: FaultProxy;
  readonly slots: readonly Slot[];
  readonly #groups: readonly LockGroup[];
  readonly #client: DynamoDBClient;
  readonly #locks: LockTable;
  readonly #file: string | undefined;

  /** Use {@link setStage}. */
  constructor(options: StageOptions, client: DynamoDBClient, locks: LockTable, proxy: FaultProxy) {
    const { engine, hostsPerGroup, seed, defect, groups = LOCK_GROUPS, file } = options;
    this.#file = file;
    this.#groups = groups;
    this.engine = engine;
    this.proxy = proxy;
    this.#client = client;
    this.#locks = locks;
    const common = { tableName: locks.tableName, directEndpoint: engine.endpoint, seed, defect };
    this.slots = groups.flatMap((group) =>
      Array.from({ length: hostsPerGroup }, (_, index) => {
        // Every other host has two sections at a time, which pass the lease from one to the other, if their lock lets them.
        return new Slot(`${group.tag}-${index}`, proxy, { ...common, group, loops: group.loops + (index % 2) });
      }),
    );
  }

  /** Starting takes long on a busy machine, and what has not begun cannot be disturbed. */
  async allInSectionOnce(): Promise<void> {
    await Promise.all(this.slots.map(async ({ host }) => await host.message(({ kind }) => kind === "entered")));
  }

  /** Ends the hosts and asks for everything that went wrong. The faults must have stopped. */
  async judge(): Promise<string[]> {
    const troubles = [...(await leave(this.slots)), ...(await crashes(this.slots))];
    troubles.push(...(await obtainAll(this.#locks, this.#groups)));
    const messages = messagesOf(this.slots);
    for (const { section, held } of ofKind(messages, "refused")) {
      if (held) troubles.push(`a guard refused ${section}, which held the lock`);
    }
    const events = messages.flatMap(({ kind: event, logs, ...told }): HistoryEvent[] =>
      Array.isArray(logs) ? logs.map((log) => ({ log, event, ...told })) : [],
    );
    for (const log of this.#groups.flatMap(logsOf)) {
      const lines = await linesOf(this.#client, this.#locks.tableName, log).all();
      events.push(...lines.map((line) => ({ log, event: "line", ...line })));
    }
    return [...troubles, ...(await violationsIn(events, this.#file))];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { host } of this.slots) host.kill("SIGKILL");
    await this.#locks.close();
    await this.proxy.close();
    this.#client.destroy();
  }
}

export async function setStage(options: StageOptions): Promise<Stage> {
  const { endpoint } = options.engine;
  const client = new DynamoDBClient({ ...testClientConfig(), endpoint });
  const locks = new LockTable({ tableName: `chaos-${randomUUID()}`, client });
  await locks.create();
  const proxy = await startFaultProxy({ target: endpoint });
  proxy.confirm = async ({ operation }) => {
    if (operation === "TransactWriteItems") await flush(options.engine, client, locks.tableName);
  };
  return new Stage(options, client, locks, proxy);
}

/**
 * DynamoDB Local forgets a transaction if it is killed within some 20 ms of its answer, and no other write that it has
 * answered. A write after the transaction shows that it is on the file. @throws if the engine was killed meanwhile.
 */
async function flush(engine: Engine, client: DynamoDBClient, TableName: string): Promise<void> {
  const { kills } = engine;
  const Item = { name: { S: "flush" }, sort: { S: "flush" } };
  await client.send(new PutItemCommand({ TableName, Item }));
  if (engine.kills !== kills) throw new Error("the engine was killed");
}
