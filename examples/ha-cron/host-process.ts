import { type ChildProcess, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { endWithThisProcess } from "../support/end-with-this-process.js";
import { writeEvent } from "./events.js";

const PROGRAM = fileURLToPath(new URL("./host.js", import.meta.url));

type Exit = readonly [code: number | null, signal: NodeJS.Signals | null];

/** A host, which is a process here: it can be killed, frozen and woken. */
export class HostProcess implements AsyncDisposable {
  readonly name: string;
  /** Rejects if the host ends before it was told to. */
  readonly failure: Promise<never>;
  readonly #log: number;
  readonly #child: ChildProcess;
  readonly #exited: Promise<Exit>;
  #mayEnd = false;

  constructor(name: string, log: number) {
    this.name = name;
    this.#log = log;
    this.#child = spawn(process.execPath, [PROGRAM, name], { stdio: ["ignore", log, "inherit"] });
    const release = endWithThisProcess(this.#child);
    this.#exited = new Promise((resolve) => {
      this.#child.once("exit", (code, signal) => {
        release();
        resolve([code, signal]);
      });
    });
    this.failure = this.#exited.then(([code, signal]) => {
      if (!this.#mayEnd) throw new Error(`host ${name} ended by itself (${signal ?? `exit code ${code}`})`);
      return new Promise<never>(() => undefined);
    });
    this.failure.catch(() => undefined);
  }

  kill(): void {
    this.#mayEnd = true;
    writeEvent(this.#log, this.name, { kind: "killed" });
    this.#child.kill("SIGKILL");
  }

  freeze(): void {
    writeEvent(this.#log, this.name, { kind: "frozen" });
    this.#child.kill("SIGSTOP");
  }

  wake(): void {
    writeEvent(this.#log, this.name, { kind: "woken" });
    this.#child.kill("SIGCONT");
  }

  /** Asks the host to end after what it does, and waits for that. */
  async stop(): Promise<void> {
    this.#mayEnd = true;
    this.#child.kill("SIGTERM");
    await this.#exited;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#mayEnd = true;
    this.#child.kill("SIGKILL");
    await this.#exited;
  }
}
