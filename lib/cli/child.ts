import { type ChildProcess, spawn } from "node:child_process";
import { addAbortListener, once } from "node:events";
import { type FencedLock, type Permit, systemClock } from "../index.js";
import { EXIT, exitCodeOf, Failure } from "./failure.js";
import { mention } from "./output.js";
import { companionsGiven, hasTerminal, processesGiven, processesIn, reachedTheGroup } from "./processes.js";

/** What the command under the lock is told of, if this one is. */
export const FORWARDED = ["SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2"] as const;

export type HeldLock = FencedLock | Permit;

/** The uuids of the runs around this one, for those to find what this one starts. */
const OUTER = "DYNAMUTEX_OUTER_UUIDS";

/** The pause between two looks at who is left of the command. */
const LOOK_MS = 50;

/**
 * The command under the lock, without a shell, with this process's streams, and all that it has started: a shell that is
 * told to end dies at once and passes nothing on.
 *
 * - Where a terminal controls this process, the command shares it, and so the process group that the keys go to: others
 *   may be in that group. The command's processes are those in it which were given the uuid of the lock. Where the kernel does
 *   not show its processes as files, only the command itself is known.
 * - Everywhere else the command has a process group of its own.
 */
export class Child {
  /** Whether it was told to end because the lock was lost, which was said as well. */
  wasToldOfLoss = false;
  readonly #command: readonly string[];
  /** What this process was given, without what is put there for the SDK, and what the lock adds. */
  readonly #env: NodeJS.ProcessEnv = { ...process.env };
  readonly #clock = systemClock();
  readonly #hasOwnGroup = !hasTerminal() && process.platform !== "win32";
  #process: ChildProcess | undefined;
  /** The first signal that asked it to end. */
  #askedBy: NodeJS.Signals | undefined;
  #isKilled = false;

  constructor(command: readonly string[]) {
    this.#command = command;
  }

  /** The signal that came before it has begun, and keeps it from that. */
  get preventedBy(): NodeJS.Signals | undefined {
    return this.#process === undefined ? this.#askedBy : undefined;
  }

  get hasBegun(): boolean {
    return this.#process?.pid !== undefined;
  }

  /** Passes on what this process was sent, unless the command has it already. */
  forward(signal: NodeJS.Signals): void {
    if (signal !== "SIGUSR1" && signal !== "SIGUSR2") this.#askedBy ??= signal;
    if (this.#hasOwnGroup || !reachedTheGroup(signal)) this.#signal(signal);
  }

  /**
   * Runs it under a lock.
   * @param killAfterMs after a loss, the time from TERM to KILL.
   * @returns the exit code that tells how it ended.
   * @throws if it could not begin.
   */
  async run(lock: HeldLock, killAfterMs: number): Promise<number> {
    if (this.preventedBy !== undefined) throw new Failure("a signal came first", exitCodeOf(this.preventedBy));
    // Nothing is started under a lock that is lost already: the host was suspended.
    lock.assertHeld();
    Object.assign(this.#env, variablesOf(lock));
    let cancelKill: () => void = () => undefined;
    using _ = addAbortListener(lock.signal, () => {
      this.wasToldOfLoss = true;
      cancelKill = this.#clock.alarm(killAfterMs, () => {
        this.#isKilled = true;
        // A `run` inside of this one passes TERM on, and cannot pass on KILL.
        this.#signal("SIGKILL", this.#nested());
      });
      this.#signal("SIGTERM");
      mention(`${lock.signal.reason.message}; ${this.#command[0]} is told to end`);
    });
    try {
      const { exitCode, signalCode } = await this.#exited();
      // What it has started was told to end as well, and is still at work under the lock.
      const isToldToEnd = (): boolean => this.#askedBy !== undefined || this.wasToldOfLoss;
      while (isToldToEnd() && !this.#isKilled && this.#isLeft()) await this.#clock.sleep(LOOK_MS);
      return exitCode ?? exitCodeOf(signalCode ?? "SIGKILL");
    } finally {
      cancelKill();
    }
  }

  /** Starts it, and waits for its own end. @throws {@link Failure} if it could not begin. */
  async #exited(): Promise<ChildProcess> {
    const [command = "", ...args] = this.#command;
    try {
      this.#process = spawn(command, args, { env: this.#env, stdio: "inherit", detached: this.#hasOwnGroup });
      await once(this.#process, "exit");
      return this.#process;
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException;
      const exitCode = code === "ENOENT" ? EXIT.notFound : EXIT.cannotExecute;
      throw new Failure(`${command} could not be started: ${message}`, exitCode, { cause: error });
    }
  }

  /** @param others are sent it as well. */
  #signal(signal: NodeJS.Signals, others: readonly number[] = []): void {
    const { pid, exitCode, signalCode } = this.#process ?? {};
    if (pid === undefined) return; // it has not begun
    const itself = exitCode === null && signalCode === null ? [pid] : [];
    const targets = this.#hasOwnGroup ? [-pid] : [...itself, ...this.#companions()];
    for (const target of new Set([...targets, ...others])) {
      try {
        process.kill(target, signal);
      } catch (error) {
        const { code, message } = error as NodeJS.ErrnoException;
        if (code !== "ESRCH") mention(`${this.#command[0]} gets no signals of this user: ${message}`); // sudo
      }
    }
  }

  #isLeft(): boolean {
    // After a loss a KILL bounds the wait for these. After a signal, the `run` that started them waits for what it must.
    if (this.wasToldOfLoss && this.#nested().length > 0) return true;
    if (!this.#hasOwnGroup) return this.#companions().length > 0;
    const pid = this.#process?.pid ?? 0;
    try {
      process.kill(-pid, 0);
    } catch (error) {
      return (error as NodeJS.ErrnoException).code === "EPERM";
    }
    // Those that nobody reaps can be sent signals, too: the first process of a container gets all orphans.
    return processesIn(pid)?.length !== 0;
  }

  /** What each `run` inside of this one has started, in whichever process group. */
  #nested(): readonly number[] {
    return processesGiven(OUTER, (uuids) => uuids.split(" ").includes(this.#env.DYNAMUTEX_UUID ?? ""));
  }

  /** The command's processes among those of this process's group. */
  #companions(): readonly number[] {
    return companionsGiven("DYNAMUTEX_UUID", this.#env.DYNAMUTEX_UUID);
  }
}

/** What the command learns of its lock; undefined takes the variable of a `run` round this one away. */
function variablesOf(lock: HeldLock): NodeJS.ProcessEnv {
  return {
    DYNAMUTEX_NAME: lock.name,
    DYNAMUTEX_UUID: lock.uuid,
    [OUTER]: [process.env[OUTER], process.env.DYNAMUTEX_UUID].filter(Boolean).join(" ") || undefined,
    DYNAMUTEX_FENCING_TOKEN: "fencingToken" in lock ? lock.fencingToken.toString() : undefined,
    DYNAMUTEX_PERMIT: "permit" in lock ? lock.permit.toString() : undefined,
    DYNAMUTEX_PERMITS: "permits" in lock && lock.permits.length > 1 ? lock.permits.join(" ") : undefined,
    DYNAMUTEX_ATTEMPT: lock.attempt?.toString(),
    DYNAMUTEX_TICK: lock.tick?.toString(),
  };
}
