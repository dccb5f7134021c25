/// <reference lib="esnext.disposable" preserve="true" />
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, readFileSync, writeSync } from "node:fs";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { compiled } from "./compiled.js";

/** What a host reports: one JSON object a line. */
export interface HostMessage {
  readonly kind: string;
  readonly [field: string]: unknown;
}

export interface HostOptions {
  /** What `hostConfig()` returns in the child; JSON. */
  readonly config?: unknown;
  /** Added to this process's own environment. */
  readonly env?: Readonly<Record<string, string>>;
  /** Flags for node. */
  readonly flags?: readonly string[];
}

export interface HostExit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

type Listener<Message> = (message: Message | undefined) => void;

const CONFIG_VARIABLE = "DYNAMUTEX_TEST_HOST_CONFIG";

/**
 * Kills a process when its own stdin ends, which is when this process ends, however it does.
 * Nothing inside the host could do that: it may be suspended, or its event loop blocked.
 */
const KEEPER = 'trap "" INT TERM HUP; read -r end; kill -KILL "$1"';

/** A program of ours in a process of its own: one that can be killed while it holds a lock. */
export class Host<Message extends HostMessage = HostMessage> implements AsyncDisposable {
  /** All it has reported so far. */
  readonly messages: Message[] = [];
  /** Resolves, however it ends; by then everything it wrote has been read. */
  readonly exit: Promise<HostExit>;
  /** What it wrote to stderr, and what it wrote to stdout that was no message. */
  stderr = "";
  #exited: HostExit | undefined;
  readonly #child: ChildProcess;
  readonly #listeners = new Set<Listener<Message>>();

  /** Use {@link startHost}. */
  constructor(child: ChildProcess) {
    this.#child = child;
    const keeper = keep(child);
    if (child.stdout) createInterface({ input: child.stdout }).on("line", (line) => this.#read(line));
    child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      this.stderr += text;
    });
    this.exit = new Promise((resolve) => {
      child.once("error", (error) => {
        this.stderr += error.message;
      });
      child.once("close", (code, signal) => {
        keeper.kill("SIGKILL");
        this.#exited = { code, signal };
        this.#tell(undefined);
        resolve(this.#exited);
      });
    });
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  get running(): boolean {
    return this.#exited === undefined;
  }

  /**
   * The first such message, whether it has come already or is still to come.
   *
   * @throws if the host exits without it; the error shows what it wrote to stderr.
   */
  async message(wanted: (message: Message) => boolean): Promise<Message> {
    return this.messages.find(wanted) ?? (await this.next(wanted));
  }

  /** Like {@link message}, among those that are still to come. */
  next(wanted: (message: Message) => boolean): Promise<Message> {
    return new Promise((resolve, reject) => {
      const listener: Listener<Message> = (message) => {
        if (message !== undefined && !wanted(message)) return;
        this.#listeners.delete(listener);
        if (message === undefined) reject(this.#missing());
        else resolve(message);
      };
      if (this.#exited) reject(this.#missing());
      else this.#listeners.add(listener);
    });
  }

  /** @returns whether there was still somebody to kill. */
  kill(signal: NodeJS.Signals = "SIGTERM"): boolean {
    return this.running && this.#child.kill(signal);
  }

  /** SIGSTOP, and resolves once not one instruction more is executed. */
  async suspend(): Promise<void> {
    this.kill("SIGSTOP");
    // Where the kernel does not show its processes as files, a signal sent is taken for a signal delivered.
    while (this.running && !["T", "gone", "unknown"].includes(processState(this.pid))) await sleep(1);
  }

  /** SIGCONT. */
  resume(): void {
    this.kill("SIGCONT");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.kill("SIGKILL");
    await this.exit;
  }

  #read(line: string): void {
    const message = parseMessage<Message>(line);
    if (message === undefined) {
      this.stderr += `${line}\n`;
    } else {
      this.messages.push(message);
      this.#tell(message);
    }
  }

  #tell(message: Message | undefined): void {
    for (const listener of [...this.#listeners]) listener(message);
  }

  #missing(): Error {
    const { code, signal } = this.#exited ?? {};
    return new Error(`the host exited (${signal ?? code}) without the message that was awaited\n${this.stderr}`);
  }
}

/** Starts a program of ours: `startHost(new URL("./hosts/counter.js", import.meta.url))`. */
export function startHost<Message extends HostMessage = HostMessage>(
  program: URL,
  { config = {}, env = {}, flags = [] }: HostOptions = {},
): Host<Message> {
  const child = spawn(process.execPath, ["--enable-source-maps", ...flags, compiled(program)], {
    env: { ...process.env, ...env, [CONFIG_VARIABLE]: JSON.stringify(config) },
    stdio: ["ignore", "pipe", "pipe"],
  });
  return new Host(child);
}

function keep({ pid }: ChildProcess): ChildProcess {
  return spawn("/bin/sh", ["-c", KEEPER, "keeper", String(pid)], { stdio: ["pipe", "ignore", "ignore"] });
}

/** In the child: what the test gave it. */
export function hostConfig<Config>(): Config {
  return JSON.parse(process.env[CONFIG_VARIABLE] ?? "{}") as Config;
}

/** In the child: tells the test. Written when it returns, so that a SIGKILL cannot take it back. */
export function report(message: HostMessage): void {
  let rest = Buffer.from(`${JSON.stringify(message)}\n`);
  while (rest.length > 0) rest = rest.subarray(writeSome(rest));
}

/** A pipe that is full for the moment takes nothing; then the parent must first read. */
function writeSome(bytes: Buffer): number {
  try {
    return writeSync(1, bytes);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EAGAIN") return 0;
    throw error;
  }
}

function parseMessage<Message>(line: string): Message | undefined {
  try {
    const parsed: unknown = JSON.parse(line);
    return typeof parsed === "object" && parsed !== null && "kind" in parsed ? (parsed as Message) : undefined;
  } catch {
    return undefined;
  }
}

/** The kernel's letter for what a process does; a zombie is gone, because nobody may ever come for it. */
export function processState(pid: number): string {
  try {
    process.kill(pid, 0);
    if (!existsSync("/proc/self/stat")) return "unknown";
    // The letter follows the name of the program, which is in brackets and may hold anything.
    const letter = /\) (\w) [^)]*$/.exec(readFileSync(`/proc/${pid}/stat`, "utf8"))?.[1] ?? "unknown";
    return letter === "Z" || letter === "X" ? "gone" : letter;
  } catch {
    return "gone";
  }
}
