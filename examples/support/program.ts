/// <reference lib="esnext.disposable" preserve="true" />
import { type ChildProcess, type StdioOptions, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { endWithThisProcess } from "./end-with-this-process.js";

export interface ProgramOptions {
  readonly env?: Readonly<Record<string, string>>;
  /** Gets each line that it prints. Default: prints it here as well. */
  readonly onLine?: (line: string) => void;
  /** A file that its output goes to instead. */
  readonly output?: number;
}

/** A program of an example in a process of its own. The end of `await using` kills it, if it still runs. */
export class Program implements AsyncDisposable {
  /** Its exit code, or null if it was killed. By then all that it printed has been read. */
  readonly exited: Promise<number | null>;
  readonly #child: ChildProcess;
  readonly #waiting = new Set<{ readonly pattern: RegExp; readonly resolve: (match: RegExpExecArray) => void }>();

  /** @param program the compiled file, as `new URL("./service.js", import.meta.url)`. */
  constructor(program: URL, args: readonly string[], { env = {}, onLine = console.log, output }: ProgramOptions = {}) {
    const stdio: StdioOptions = ["pipe", output ?? "pipe", "inherit"];
    this.#child = spawn(process.execPath, [fileURLToPath(program), ...args], {
      env: { ...process.env, ...env },
      stdio,
    });
    const release = endWithThisProcess(this.#child);
    this.exited = once(this.#child, "close").then(([code]) => {
      release();
      return code;
    });
    if (this.#child.stdout === null) return;
    createInterface({ input: this.#child.stdout }).on("line", (line) => {
      onLine(line);
      this.#tell(line);
    });
  }

  /** The next line like that. @throws if the program ends without it. */
  async next(pattern: RegExp): Promise<RegExpExecArray> {
    const match = new Promise<RegExpExecArray>((resolve) => this.#waiting.add({ pattern, resolve }));
    const ended = this.exited.then((code) => {
      throw new Error(`It ended (${code ?? "killed"}) without a line like ${pattern}`);
    });
    return await Promise.race([match, ended]);
  }

  /** Gives it a line to read. */
  write(line: string): void {
    this.#child.stdin?.write(`${line}\n`);
  }

  /** No more lines to read follow. */
  end(): void {
    this.#child.stdin?.end();
  }

  kill(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.kill("SIGKILL");
    await this.exited;
  }

  #tell(line: string): void {
    for (const waiting of this.#waiting) {
      const match = waiting.pattern.exec(line);
      if (match === null) continue;
      this.#waiting.delete(waiting);
      waiting.resolve(match);
    }
  }
}
