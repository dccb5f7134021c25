import { type ChildProcess, fork } from "node:child_process";
import { EventEmitter, on, once } from "node:events";
import { type LossReason, systemClock } from "../index.js";
import { Failure } from "./failure.js";
import { print, printable } from "./output.js";
import { type Answer, now, type Told, type Used } from "./rehearsal-host.js";

/** How long a host may take to give its lock back when it is told to end. */
const END_MS = 3_000;

/** What is done to a host in its section, and how that is shown. */
const ACTS = {
  SIGKILL: ["×", "is killed while it holds the lock (SIGKILL)"],
  SIGSTOP: ["▒", "is frozen while it holds the lock (SIGSTOP)"],
  SIGCONT: ["░", "resumes and believes that it holds the lock (SIGCONT)"],
} as const;

/** A host, which is a process here. */
export interface Host {
  readonly name: string;
  readonly child: ChildProcess;
  used?: Used;
  mark: string;
}

/** The hosts of a rehearsal, the count that they share, and what was seen of them. Shows who holds the lock when. */
export class Cast implements AsyncDisposable {
  readonly hosts: readonly Host[];
  /** From the end of a section to the begin of another host's, in ms. */
  readonly handOvers: number[] = [];
  /** Writes that were based on a count which was no longer true: two hosts have held the lock at once. */
  readonly violations: string[] = [];
  sections = 0;
  readonly #heard = new EventEmitter();
  readonly #inbox: AsyncIterator<[Host, Told]>;
  #startedAt: number | undefined;
  #count = 0;
  /** The last write, whose host takes the lock again when another has had it. */
  #written: { readonly host: Host; readonly at: number } | undefined;
  #isOver = false;

  constructor(names: readonly string[], lockName: string, signal: AbortSignal) {
    this.#inbox = on(this.#heard, "told", { signal }) as AsyncIterator<[Host, Told]>;
    const [, program = "", ...args] = process.argv;
    print(`${["seconds", ...names].join("  ")}\n`);
    this.hosts = names.map((name) => {
      const child = fork(program, [...args, "--host", lockName], { stdio: ["ignore", "ignore", "inherit", "ipc"] });
      const host: Host = { name, child, mark: "·" };
      child.on("message", (told) => this.#heard.emit("told", host, told));
      child.on("exit", () => {
        const failure = { kind: "failed", message: "it has ended by itself" };
        if (!this.#isOver && host.mark !== ACTS.SIGKILL[0]) this.#heard.emit("told", host, failure);
      });
      return host;
    });
  }

  /** The next host whose section begins, and when. It waits there until it is answered. */
  async begun(): Promise<readonly [host: Host, at: number]> {
    const [host, { at }] = await this.#next(({ kind }) => kind === "began");
    return [host, at];
  }

  /** How the section of a host ends. @returns why its lock was lost; undefined if it has written. */
  async ended(of: Host): Promise<LossReason | undefined> {
    const [, told] = await this.#next(({ kind }, host) => host === of && kind !== "began");
    return told.kind === "lost" ? told.reason : undefined;
  }

  /** Lets a host in its section go on. */
  answer({ child }: Host, answer: Answer[0] = "read"): void {
    child.send([answer, this.#count] satisfies Answer, () => undefined);
  }

  /** @returns when. */
  act(host: Host, signal: keyof typeof ACTS): number {
    const at = now();
    host.child.kill(signal);
    const [mark, what] = ACTS[signal];
    this.#show(host, mark, what, at);
    return at;
  }

  /** Ends all hosts, which give their locks back if they can. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isOver = true;
    const running = this.hosts.filter(({ child }) => child.exitCode === null && child.signalCode === null);
    const ends = running.map(async ({ child, mark }) => {
      const exited = once(child, "exit");
      if (mark === ACTS.SIGSTOP[0]) child.kill("SIGCONT");
      if (child.connected) child.disconnect();
      const cancel = systemClock().alarm(END_MS, () => child.kill("SIGKILL"));
      await exited;
      cancel();
    });
    await Promise.all(ends);
  }

  async #next(wanted: (told: Told, host: Host) => boolean): Promise<readonly [Host, Told]> {
    for (;;) {
      const [host, told] = (await this.#inbox.next()).value;
      this.#record(host, told);
      if (wanted(told, host)) return [host, told];
    }
  }

  #record(host: Host, told: Told): void {
    if (told.kind === "failed") throw new Failure(`${host.name}: ${told.message}`);
    host.used = told.used;
    const last = this.#written;
    if (told.kind !== "lost" && last !== undefined) this.answer(last.host, "again");
    if (told.kind === "began") {
      this.sections += 1;
      if (last !== undefined) this.handOvers.push(told.at - last.at);
      this.#written = undefined;
      this.#show(host, "█", "takes the lock", told.at);
    } else if (told.kind === "wrote") {
      if (told.count !== this.#count + 1) {
        this.violations.push(`${host.name} wrote ${told.count}, and ${this.#count} had been written`);
      }
      this.#count = Math.max(this.#count, told.count);
      this.#written = { host, at: told.at };
      host.mark = "·";
      this.answer(host, "release"); // not before it is recorded
    } else {
      this.#show(host, "·", `learns that it has lost the lock: ${told.reason}`, told.at);
    }
  }

  #show(host: Host, mark: string, what: string, at: number): void {
    host.mark = mark;
    this.#startedAt ??= at;
    const time = ((at - this.#startedAt) / 1_000).toFixed(3).padStart("seconds".length);
    print(`${[time, ...this.hosts.map((each) => each.mark), printable(`${host.name} ${what}`)].join("  ")}\n`);
  }
}
