import { randomUUID } from "node:crypto";
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { LockTable, type MutexOptions } from "../../lib/index.js";
import { testClientConfig } from "../support/endpoint.js";
import { type FaultProxy, startFaultProxy } from "../support/fault-proxy.js";
import { violationsIn } from "./checker.js";
import type { Defect } from "./defects.js";
import type { Engine } from "./engine.js";
import { Register } from "./register.js";
import { crashes, leave, obtainAll } from "./settle.js";
import { Slot } from "./slot.js";
import { messagesOf, ofKind } from "./worker-messages.js";

export const TTL_MS = 1_500;

/** Two locks, because hosts that share one have one kind of clock. The hosts' own time of day is wrong in both. */
const LOCKS: readonly { readonly name: string; readonly clock: "table" | "own"; readonly mutex: MutexOptions }[] = [
  { name: "by the table's clock", clock: "table", mutex: { ttlMs: TTL_MS } },
  { name: "by watching alone", clock: "own", mutex: { ttlMs: TTL_MS, takeover: "unchanged" } },
];

export interface StageOptions {
  readonly engine: Engine;
  readonly hostsPerLock: number;
  readonly seed: number;
  readonly defect?: Defect | undefined;
}

/** A new table, a proxy before it, and hosts behind that. */
export class Stage implements AsyncDisposable {
  readonly engine: Engine;
  readonly proxy: FaultProxy;
  readonly slots: readonly Slot[];
  readonly #client: DynamoDBClient;
  readonly #locks: LockTable;

  /** Use {@link setStage}. */
  constructor(options: StageOptions, client: DynamoDBClient, locks: LockTable, proxy: FaultProxy) {
    const { engine, hostsPerLock, seed, defect } = options;
    this.engine = engine;
    this.proxy = proxy;
    this.#client = client;
    this.#locks = locks;
    const common = { tableName: locks.tableName, directEndpoint: engine.endpoint, seed, defect };
    this.slots = LOCKS.flatMap(({ name, clock, mutex }) =>
      Array.from({ length: hostsPerLock }, (_, index) => {
        // Every other host has two sections at a time, which pass the lease from one to the other.
        const config = { ...common, lockName: name, mutex, clock, loops: 1 + (index % 2) };
        return new Slot(`${clock}-${index}`, proxy, config);
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
    troubles.push(...(await obtainAll(this.#locks, LOCKS)));
    for (const { name } of LOCKS) troubles.push(...(await this.#violationsOf(name)));
    return troubles;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { host } of this.slots) host.kill("SIGKILL");
    await this.#locks.close();
    await this.proxy.close();
    this.#client.destroy();
  }

  async #violationsOf(lockName: string): Promise<string[]> {
    const messages = messagesOf(this.slots.filter((slot) => slot.lockName === lockName));
    const violations = violationsIn({
      lines: await new Register(this.#client, this.#locks.tableName, lockName).lines(),
      beliefs: ofKind(messages, "left").flatMap(({ section, belief }) =>
        belief === undefined ? [] : [{ section, ...belief }],
      ),
      acknowledged: ofKind(messages, "acknowledged"),
    });
    return violations.map(({ kind, detail }) => `${kind}: ${detail}`);
  }
}

export async function setStage(options: StageOptions): Promise<Stage> {
  const { endpoint } = options.engine;
  const client = new DynamoDBClient({ ...testClientConfig(), endpoint });
  const locks = new LockTable({ tableName: `chaos-${randomUUID()}`, client });
  await locks.create();
  return new Stage(options, client, locks, await startFaultProxy({ target: endpoint }));
}
