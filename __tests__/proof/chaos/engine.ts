import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type DynamoDbLocal, startDynamoDbLocal } from "../../../examples/support/dynamodb-local.js";

/** A start in half the processor time, which counts for an engine that is started again and again. */
const JAVA_OPTIONS = ["-Xmx512m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"];

/** DynamoDB Local on a file of its own, at an address that stays when it is killed and started again. */
export class Engine implements AsyncDisposable {
  readonly #folder: string;
  #running: DynamoDbLocal;
  #kills = 0;

  /** Use {@link startEngine}. */
  constructor(folder: string, running: DynamoDbLocal) {
    this.#folder = folder;
    this.#running = running;
  }

  get endpoint(): string {
    return this.#running.endpoint;
  }

  /** How often it was killed so far. */
  get kills(): number {
    return this.#kills;
  }

  /** SIGKILL, and a new process on the same file. */
  async killAndRestart(): Promise<void> {
    const { port } = this.#running;
    this.#kills += 1;
    await this.#running.stop();
    this.#running = await launch(this.#folder, port);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#running.stop();
    await rm(this.#folder, { recursive: true, force: true });
  }
}

export async function startEngine(): Promise<Engine> {
  const folder = await mkdtemp(join(tmpdir(), "dynamutex-chaos-"));
  await writeFile(join(folder, "java-options"), JAVA_OPTIONS.join("\n"));
  return new Engine(folder, await launch(folder));
}

async function launch(folder: string, port = 0): Promise<DynamoDbLocal> {
  return await startDynamoDbLocal({ port, dbPath: folder, javaOption: `@${join(folder, "java-options")}` });
}
