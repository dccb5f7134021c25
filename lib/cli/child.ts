import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import type { Clock } from "../index.js";
import { EXIT, exitCodeOf, Failure } from "./failure.js";
import { mention } from "./output.js";
import { hasTerminal, processesIn, reachedTheGroup, statOf, wasGiven } from "./processes.js";

/** What the command under the lock is told of, if this one is. */
const FORWARDED = ["SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2"] as const;

export type ForwardedSignal = (typeof FORWARDED)[number];

/** Ends a command that has not begun to do anything for anybody else. */
export function endsWaiting(signal: ForwardedSignal): boolean {
  return signal !== "SIGUSR1" && signal !== "SIGUSR2";
}

/** @returns what takes the handlers off again. */
export function onSignals(handle: (signal: ForwardedSignal) => void): () => void {
  for (const signal of FORWARDED) process.on(signal, handle);
  return () => {
    for (const signal of FORWARDED) process.off(signal, handle);
  };
}

export interface ChildOptions {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: NodeJS.ProcessEnv;
  /** A variable of `env` that no other process has, as `NAME=value`. */
  readonly mark: string;
  readonly clock: Clock;
}

/** The pause between two looks at who is left of the command. */
const LOOK_MS = 50;

/**
 * The command under the lock, without a shell, with this process's streams, and all that it has started: a shell that is
 * told to end dies at once and passes nothing on.
 *
 * - Where a terminal controls this process, the command shares it, and so the process group that the keys go to: others
 *   may be in that group. The command's processes are those in it which were given the mark. Where the kernel does not
 *   show its processes as files, only the command itself is known.
 * - Everywhere else the command has a process group of its own.
 */
export class Child {
  /** The exit code that tells how it ended. @throws {@link Failure} if it could not begin. */
  readonly ended: Promise<number>;
  readonly #options: ChildOptions;
  readonly #hasOwnGroup = !hasTerminal() && process.platform !== "win32";
  readonly #process: ChildProcess;
  #isToldToEnd = false;
  #isKilled = false;
  #cancelKill: () => void = () => undefined;

  constructor(options: ChildOptions) {
    const { command, args, env } = options;
    this.#options = options;
    try {
      this.#process = spawn(command, args, { env, stdio: "inherit", detached: this.#hasOwnGroup });
    } catch (error) {
      throw cannotBegin(command, error as NodeJS.ErrnoException);
    }
    this.ended = this.#end().finally(() => this.#cancelKill());
  }

  /** Passes on what this process was sent, unless the command has it already. */
  forward(signal: ForwardedSignal): void {
    this.#isToldToEnd ||= endsWaiting(signal);
    if (this.#hasOwnGroup || !reachedTheGroup(signal)) this.#signal(signal);
  }

  /** Asks it to end, and ends it by force after so long. */
  terminate(killAfterMs: number): void {
    this.#isToldToEnd = true;
    this.#cancelKill = this.#options.clock.alarm(killAfterMs, () => {
      this.#isKilled = true;
      this.#signal("SIGKILL");
    });
    this.#signal("SIGTERM");
  }

  async #end(): Promise<number> {
    const { command, clock } = this.#options;
    const [code, signal] = await once(this.#process, "exit").catch((error) => {
      throw cannotBegin(command, error);
    });
    // What it has started was told to end as well, and is still at work under the lock.
    while (this.#isToldToEnd && !this.#isKilled && this.#isLeft()) await clock.sleep(LOOK_MS);
    return code ?? exitCodeOf(signal ?? "SIGKILL");
  }

  #signal(signal: NodeJS.Signals): void {
    const { pid, exitCode, signalCode } = this.#process;
    if (pid === undefined) return; // it could not begin
    const itself = exitCode === null && signalCode === null ? [pid] : [];
    const targets = this.#hasOwnGroup ? [-pid] : new Set([...itself, ...this.#companions()]);
    for (const target of targets) {
      try {
        process.kill(target, signal);
      } catch (error) {
        const { code, message } = error as NodeJS.ErrnoException;
        if (code !== "ESRCH") mention(`${this.#options.command} gets no signals of this user: ${message}`); // sudo
      }
    }
  }

  #isLeft(): boolean {
    const { pid = 0 } = this.#process;
    if (!this.#hasOwnGroup) return this.#companions().length > 0;
    try {
      process.kill(-pid, 0);
    } catch (error) {
      return (error as NodeJS.ErrnoException).code === "EPERM";
    }
    // Those that nobody reaps can be sent signals, too: the first process of a container gets all orphans.
    return processesIn(pid)?.length !== 0;
  }

  /** The command's processes among those of this process's group. */
  #companions(): readonly number[] {
    const group = statOf("self")?.group;
    const all = group === undefined ? undefined : processesIn(group);
    return all?.filter((pid) => wasGiven(pid, this.#options.mark)) ?? [];
  }
}

function cannotBegin(command: string, error: NodeJS.ErrnoException): Failure {
  const exitCode = error.code === "ENOENT" ? EXIT.notFound : EXIT.cannotExecute;
  return new Failure(`${command} could not be started: ${error.message}`, exitCode, { cause: error });
}
