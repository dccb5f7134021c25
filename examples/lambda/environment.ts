/// <reference lib="esnext.disposable" preserve="true" />
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { endWithThisProcess } from "../support/end-with-this-process.js";
import type { Invocation } from "./runtime.js";

/**
 * An execution environment, as Lambda makes them: one process, which is frozen except during an invocation, and killed if an invocation
 * takes longer than it may.
 */
export class Environment implements AsyncDisposable {
  readonly #name: string;
  readonly #child: ChildProcess;
  readonly #exited: Promise<unknown>;
  readonly #initialised: Promise<string>;
  #requests = 0;

  constructor(name: string, env: Readonly<Record<string, string>>) {
    this.#name = name;
    this.#child = fork(new URL("./runtime.js", import.meta.url), {
      env: { ...process.env, AWS_LAMBDA_LOG_STREAM_NAME: name, ...env },
    });
    this.#exited = once(this.#child, "exit").then(endWithThisProcess(this.#child));
    this.#initialised = this.#nextMessage();
  }

  /** @returns what the handler returns, or how it fails. */
  async invoke(event: Invocation["event"], { timeoutMs }: { readonly timeoutMs: number }): Promise<string> {
    await this.#initialised;
    this.#requests += 1;
    const invocation: Invocation = { event, requestId: `${this.#name}-${this.#requests}`, timeoutMs };
    const timeout = setTimeout(() => this.#child.kill("SIGKILL"), timeoutMs);
    this.#child.kill("SIGCONT");
    this.#child.send(invocation);
    const reply = await this.#nextMessage();
    clearTimeout(timeout);
    return reply;
  }

  /** The next message of the runtime, which is frozen then; or that its process has ended without one. */
  async #nextMessage(): Promise<string> {
    const ended = this.#exited.then(() => ["the process has ended"]);
    const [message] = await Promise.race([once(this.#child, "message"), ended]);
    this.#child.kill("SIGSTOP");
    return message;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.kill("SIGKILL");
    await this.#exited;
  }
}
