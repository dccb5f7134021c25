import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type DynamoDbLocal, startDynamoDbLocal } from "../../examples/support/dynamodb-local.js";

/** DynamoDB Local on a file of its own, at an address that stays when it is killed and started again. */
export class Engine implements AsyncDisposable {
  readonly #folder: string;
  #running: DynamoDbLocal;

  /** Use {@link startEngine}. */
  constructor(folder: string, running: DynamoDbLocal) {
    this.#folder = folder;
    this.#running = running;
  }

  get endpoint(): string {
    return this.#running.endpoint;
  }

  /** SIGKILL, and a new process on the same file. */
  async killAndRestart(): Promise<void> {
    const { port } = this.#running;
    await this.#running.stop();
    this.#running = await startDynamoDbLocal({ port, dbPath: this.#folder });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#running.stop();
    await rm(this.#folder, { recursive: true, force: true });
  }
}

export async function startEngine(): Promise<Engine> {
  const folder = await mkdtemp(join(tmpdir(), "dynamutex-chaos-"));
  return new Engine(folder, await startDynamoDbLocal({ dbPath: folder }));
}
