import { type ChildProcess, spawn } from "node:child_process";
import type { Clock } from "../index.js";
import { EXIT, exitCodeOf } from "./exit-codes.js";
import { Failure } from "./failure.js";
import { mention } from "./output.js";

export interface ChildOptions {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: NodeJS.ProcessEnv;
  readonly clock: Clock;
}

/** The command under the lock: without a shell, in this process's group and on its terminal, with its streams. */
export class Child {
  /** The exit code that tells how it ended. @throws {@link Failure} if it could not begin. */
  readonly ended: Promise<number>;
  readonly #process: ChildProcess;
  readonly #clock: Clock;
  #cancelKill: () => void = () => undefined;

  constructor({ command, args, env, clock }: ChildOptions) {
    this.#clock = clock;
    try {
      this.#process = spawn(command, args, { env, stdio: "inherit" });
    } catch (error) {
      throw cannotBegin(command, error as NodeJS.ErrnoException);
    }
    this.ended = new Promise<number>((resolve, reject) => {
      this.#process.on("error", (error) => {
        if (this.#process.pid === undefined) reject(cannotBegin(command, error));
        else mention(`${command} gets no signals of this user: ${error.message}`); // sudo
      });
      this.#process.once("exit", (code, signal) => resolve(code ?? exitCodeOf(signal ?? "SIGKILL")));
    }).finally(() => this.#cancelKill());
  }

  signal(signal: NodeJS.Signals): void {
    this.#process.kill(signal);
  }

  /** Asks it to end, and ends it by force after so long. */
  terminate(killAfterMs: number): void {
    this.#process.kill("SIGTERM");
    this.#cancelKill = this.#clock.alarm(killAfterMs, () => this.#process.kill("SIGKILL"));
  }
}

function cannotBegin(command: string, error: NodeJS.ErrnoException): Failure {
  const exitCode = error.code === "ENOENT" ? EXIT.notFound : EXIT.cannotExecute;
  return new Failure(`${command} could not be started: ${error.message}`, exitCode, { cause: error });
}
