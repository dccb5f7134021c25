/// <reference lib="esnext.disposable" preserve="true" />
import { type ChildProcess, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { endWithThisProcess } from "../../examples/support/end-with-this-process.js";
import { eventually } from "./eventually.js";

export interface ProgramExit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** A program in a process of its own, and all that it has printed. The end of `await using` kills it, if it still runs. */
export class RunningProgram implements AsyncDisposable {
  /** The lines that it printed, errors among them, in the order in which they came. */
  readonly lines: string[] = [];
  /** How it ended. By then all that it printed has been read. */
  readonly exit: Promise<ProgramExit>;
  #ended = false;
  readonly #child: ChildProcess;

  constructor(file: string, options: { readonly cwd: string; readonly env: NodeJS.ProcessEnv }) {
    this.#child = spawn(process.execPath, [file], { ...options, stdio: ["ignore", "pipe", "pipe"] });
    const release = endWithThisProcess(this.#child);
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      if (stream !== null) createInterface({ input: stream }).on("line", (line) => this.lines.push(line));
    }
    this.exit = new Promise((resolve) => {
      this.#child.once("close", (code, signal) => {
        release();
        this.#ended = true;
        resolve({ code, signal });
      });
    });
  }

  /** Resolves once it has printed such a line, this many times. @throws if it ends without. */
  async printed(line: string | RegExp, times = 1): Promise<void> {
    const count = () => this.lines.filter((each) => (line instanceof RegExp ? line.test(each) : each === line)).length;
    await eventually(() => this.#ended || count() >= times);
    if (count() < times) throw new Error(`It ended without having printed ${line}:\n${this.lines.join("\n")}`);
  }

  kill(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  /** It gets the last of them before it can have ended by the first, however busy the machine is. */
  killAtOnce(...signals: readonly NodeJS.Signals[]): void {
    for (const signal of ["SIGSTOP", ...signals, "SIGCONT"] as const) this.kill(signal);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.kill("SIGKILL");
    await this.exit;
  }
}
