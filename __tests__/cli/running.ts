/// <reference lib="esnext.disposable" preserve="true" />
import type { ChildProcessWithoutNullStreams } from "node:child_process";

export interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A command that was started, and what it has written so far. */
export class Running implements AsyncDisposable {
  stdout = "";
  stderr = "";
  /** Resolves when it has ended and all that it wrote was read. */
  readonly ended: Promise<Ended>;
  /** Resolves to its exit code when it has ended, whoever still holds its pipes. */
  readonly exited: Promise<number | null>;
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #listeners = new Set<() => void>();
  #isOver = false;

  constructor(child: ChildProcessWithoutNullStreams) {
    this.#child = child;
    child.stdin.on("error", () => undefined); // it may end before it has read all
    child.stdout.setEncoding("utf8").on("data", (text: string) => this.#add("stdout", text));
    child.stderr.setEncoding("utf8").on("data", (text: string) => this.#add("stderr", text));
    this.exited = new Promise((resolve) => child.once("exit", (code) => resolve(code)));
    this.ended = new Promise((resolve) => {
      child.once("close", (code, signal) => {
        this.#isOver = true;
        this.#tell();
        resolve({ code, signal, stdout: this.stdout, stderr: this.stderr });
      });
    });
  }

  /** The first such text in what it has written or will write. @throws if it ends without. */
  async says(wanted: RegExp, stream: "stdout" | "stderr" = "stdout"): Promise<RegExpExecArray> {
    for (;;) {
      const found = wanted.exec(this[stream]);
      if (found !== null) return found;
      if (this.#isOver) throw new Error(`it ended without ${wanted}: ${this.stdout}${this.stderr}`);
      await new Promise<void>((resolve) => this.#listeners.add(resolve));
    }
  }

  /** Types, or sends on its stdin. */
  type(text: string): void {
    this.#child.stdin.write(text);
  }

  /** Its stdin ends. */
  endInput(): void {
    this.#child.stdin.end();
  }

  kill(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.#isOver) this.kill("SIGKILL");
    this.#child.stdout.destroy(); // a process that it leaves behind may have it open
    this.#child.stderr.destroy();
    await this.ended;
  }

  #add(stream: "stdout" | "stderr", text: string): void {
    this[stream] += text;
    this.#tell();
  }

  #tell(): void {
    for (const listener of [...this.#listeners]) listener();
    this.#listeners.clear();
  }
}
