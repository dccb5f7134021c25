/// <reference lib="esnext.disposable" preserve="true" />
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import type { ContenderName } from "./contenders/index.js";
import type { LockerOptions } from "./contenders/locker.js";
import type { Tasks } from "./worker.js";

type Argument<Task extends keyof Tasks> = Parameters<Tasks[Task]>[0];
type Answer<Task extends keyof Tasks> = Awaited<ReturnType<Tasks[Task]>>;

/** Who has not done by then what it was told hangs. The longest task is to keep locks for three minutes. */
const LONGEST_TASK_MS = 270_000;

/** How many lockers a process opens, and how often each takes a lock before it counts. */
interface Opening {
  readonly count?: number | undefined;
  readonly cycles?: number | undefined;
}

/** The bench's side of one process of a contender. It ends with the bench, however that ends. */
export class Worker implements AsyncDisposable {
  readonly #child: ChildProcess;
  readonly #asked = new Map<number, { resolve(value: unknown): void; reject(error: Error): void }>();
  #asks = 0;

  constructor({ flags = [] }: { readonly flags?: readonly string[] } = {}) {
    this.#child = fork(new URL("./worker.js", import.meta.url), {
      execArgv: ["--enable-source-maps", ...flags],
      // The SDK's advice to use a later Node is no news here.
      env: { ...process.env, AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED: "true" },
    });
    this.#child.on("message", ({ id, value, error }: { id: number; value?: unknown; error?: string }) => {
      const asked = this.#asked.get(id);
      this.#asked.delete(id);
      if (error === undefined) asked?.resolve(value);
      else asked?.reject(new Error(error));
    });
    this.#child.once("exit", () => {
      for (const { reject } of this.#asked.values()) reject(new Error("The worker has ended"));
    });
  }

  /** @throws what the task threw; that the process has ended, or hangs. */
  ask<Task extends keyof Tasks>(
    task: Task,
    ...[args]: Argument<Task> extends undefined ? [] : [Argument<Task>]
  ): Promise<Answer<Task>> {
    this.#asks += 1;
    const id = this.#asks;
    const answer = new Promise<Answer<Task>>((resolve, reject) => {
      const late = setTimeout(
        () => reject(new Error(`No answer to ${task} within ${LONGEST_TASK_MS} ms`)),
        LONGEST_TASK_MS,
      );
      const settled =
        <Value>(settle: (value: Value) => void) =>
        (value: Value): void => {
          clearTimeout(late);
          settle(value);
        };
      this.#asked.set(id, { resolve: settled(resolve as (value: unknown) => void), reject: settled(reject) });
      if (this.#child.connected) this.#child.send({ id, task, args: args ?? {} });
      else this.#asked.get(id)?.reject(new Error("The worker has ended"));
    });
    // Whoever asked may look at it later than it fails.
    answer.catch(() => undefined);
    return answer;
  }

  /** Opens `count` lockers, and lets them do what they will do until it is no news to them. */
  async open(
    name: ContenderName,
    options: LockerOptions,
    lock: string,
    { count = 1, cycles = 20 }: Opening = {},
  ): Promise<void> {
    await this.ask("open", { name, options, count });
    await this.ask("warmUp", { name: `${lock}-${process.hrtime.bigint()}`, cycles });
  }

  /** Takes it down with its locks in its hand. */
  async kill(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const exited = once(this.#child, "exit");
    this.#child.kill("SIGKILL");
    await exited;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.kill();
  }
}

/** Several processes, all of one contender. */
export class Team implements AsyncDisposable {
  readonly workers: readonly Worker[];

  constructor(count: number) {
    this.workers = Array.from({ length: count }, () => new Worker());
  }

  /** Opens all of them at once. */
  async open(
    name: ContenderName,
    options: LockerOptions,
    lock: string,
    { count, cycles }: Opening = {},
  ): Promise<void> {
    await Promise.all(this.workers.map((worker) => worker.open(name, options, lock, { count, cycles })));
  }

  /** The one of a team of one. */
  get only(): Worker {
    const [worker] = this.workers;
    if (worker === undefined) throw new Error("This team has nobody");
    return worker;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.workers.map((worker) => worker.kill()));
  }
}
