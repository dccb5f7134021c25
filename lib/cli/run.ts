import {
  type Clock,
  type FencedLock,
  findLockLost,
  type LockInfo,
  type LockTable,
  LockTimeoutError,
  type Permit,
  type TryRun,
} from "../index.js";
import { Child, endsWaiting, type ForwardedSignal, onSignals } from "./child.js";
import { EXIT, exitCodeOf, Failure } from "./failure.js";
import { findCommand } from "./find-command.js";
import { explained, openTable } from "./open-table.js";
import { planRun, type RunOptions, type RunPlan, showTick } from "./options.js";
import { complain, mention } from "./output.js";

type HeldLock = FencedLock | Permit;

/** What runs under the lock. @returns its exit code; rejects if it has not begun. */
type Section = (lock: HeldLock) => Promise<number>;

/** Runs a command while holding a lock. @returns the exit code. */
export async function run(name: string, command: readonly string[], options: RunOptions): Promise<number> {
  const plan = planRun(options);
  findCommand(command[0] ?? "");
  const env = { ...process.env }; // before what is put there for the SDK
  const table = openTable(options);
  const { locks, clock } = table;
  const held = new HeldRun({ command, env, clock, killAfterMs: plan.killAfterMs });
  const stopListening = onSignals((signal) => {
    // A call that waits is refused then, and what it has sent is taken back.
    if (!held.heard(signal)) locks.close({ drainMs: 0 }).catch(() => undefined);
  });
  try {
    const result = await underLock(locks, name, held.section, options, plan);
    return result.ran ? result.value : busy(whyNot(name, result.because, result.row), options);
  } catch (error) {
    if (held.endedBy !== undefined) return exitCodeOf(held.endedBy);
    if (error instanceof LockTimeoutError) return busy(error.message, options);
    const lost = findLockLost(error);
    if (lost === undefined) throw await explained(error, table);
    if (!held.wasTold) complain(`${lost.message}; ${command[0]} had ended by then`);
    return EXIT.lost;
  } finally {
    await locks.close().catch(() => undefined);
    stopListening();
  }
}

interface RunHow {
  readonly command: readonly string[];
  readonly env: NodeJS.ProcessEnv;
  readonly clock: Clock;
  readonly killAfterMs: number;
}

/** The command, and the signals that come before it begins and while it runs. */
class HeldRun {
  /** The signal that ended the waiting. */
  endedBy: ForwardedSignal | undefined;
  /** Whether the loss of the lock was reported. */
  wasTold = false;
  #child: Child | undefined;
  readonly #how: RunHow;

  constructor(how: RunHow) {
    this.#how = how;
  }

  /** Passes a signal on. @returns false if it ends the waiting. */
  heard(signal: ForwardedSignal): boolean {
    if (this.#child !== undefined) {
      this.#child.forward(signal);
      return true;
    }
    if (!endsWaiting(signal)) return true;
    this.endedBy ??= signal;
    return false;
  }

  readonly section: Section = async (lock) => {
    if (this.endedBy !== undefined) throw new Failure("a signal came first", exitCodeOf(this.endedBy));
    // Nothing is started under a lock that is lost already: the host was suspended.
    lock.assertHeld();
    const { env, clock, killAfterMs } = this.#how;
    const [command = "", ...args] = this.#how.command;
    const mark = `DYNAMUTEX_UUID=${lock.uuid}`;
    const child = new Child({ command, args, env: { ...env, ...variablesOf(lock) }, mark, clock });
    this.#child = child;
    const end = (): void => {
      this.wasTold = true;
      child.terminate(killAfterMs);
      mention(`${lock.signal.reason.message}; ${command} is told to end`);
    };
    lock.signal.addEventListener("abort", end);
    if (lock.signal.aborted) end();
    return await child.ended.finally(() => lock.signal.removeEventListener("abort", end));
  };
}

/** What the command learns of its lock; undefined takes the variable of a `run` round this one away. */
function variablesOf(lock: HeldLock): NodeJS.ProcessEnv {
  return {
    DYNAMUTEX_NAME: lock.name,
    DYNAMUTEX_UUID: lock.uuid,
    DYNAMUTEX_FENCING_TOKEN: "fencingToken" in lock ? String(lock.fencingToken) : undefined,
    DYNAMUTEX_PERMIT: "permit" in lock ? String(lock.permit) : undefined,
    DYNAMUTEX_ATTEMPT: lock.attempt === undefined ? undefined : String(lock.attempt),
    DYNAMUTEX_TICK: lock.tick === undefined ? undefined : String(lock.tick),
  };
}

async function underLock(
  locks: LockTable,
  name: string,
  section: Section,
  { fair, permits, atLeast: holdAtLeastMs, once, every: everyMs, untilSuccess }: RunOptions,
  { waitMs, ttlMs, safetyMarginMs }: RunPlan,
): Promise<TryRun<number>> {
  const settings = { ttlMs, safetyMarginMs, fair };
  if (permits !== undefined) {
    const semaphore = locks.semaphore(name, { ...settings, permits });
    if (waitMs === undefined) return await semaphore.tryRun(section, { holdAtLeastMs });
    return { ran: true, value: await semaphore.run(section, { waitMs, holdAtLeastMs }) };
  }
  const mutex = locks.mutex(name, { ...settings, fencing: true });
  if (untilSuccess !== undefined) {
    const until = untilSuccess === true ? true : { maxAttempts: untilSuccess };
    const options = { holdAtLeastMs, once, everyMs, untilSuccess: until } as const;
    return await succeeding(section, (judged) => mutex.tryRun(judged, options));
  }
  if (waitMs === undefined) return await mutex.tryRun(section, { holdAtLeastMs, once, everyMs });
  return { ran: true, value: await mutex.run(section, { waitMs, holdAtLeastMs }) };
}

/** Ends a run that has another exit code than 0: its tick has not succeeded. */
const NO_SUCCESS = new Error("The command has not succeeded");

/** A command that could not be run or found has not begun, by the exit codes of a shell. */
const NOT_BEGUN: readonly number[] = [126, 127];

/** Runs a section for a tick that is due until it succeeds, which only the exit code 0 says. */
async function succeeding(
  section: Section,
  tryRun: (judged: (lock: FencedLock) => Promise<number>) => Promise<TryRun<number>>,
): Promise<TryRun<number>> {
  let code: number = EXIT.done;
  let held: FencedLock | undefined;
  try {
    return await tryRun(async (lock) => {
      held = lock;
      code = await section(lock).catch((error: unknown) => {
        lock.uncountAttempt();
        throw error;
      });
      if (NOT_BEGUN.includes(code)) lock.uncountAttempt();
      if (code !== EXIT.done) throw NO_SUCCESS;
      return code;
    });
  } catch (error) {
    if (error !== NO_SUCCESS) throw error;
    // It is unlocked by now, and this tells whether it was lost: what the section throws goes before a loss.
    await held?.unlock();
    return { ran: true, value: code };
  }
}

type NotRun = Extract<TryRun<number>, { readonly ran: false }>;

/** Why the command was not run, in one line. */
function whyNot(name: string, because: NotRun["because"], row: LockInfo | undefined): string {
  const lock = `Lock ${JSON.stringify(name)}`;
  if (because === "gave-up") return `${lock}: tick ${row?.tick} was run ${row?.attempts} times, and none succeeded`;
  if (because === "superseded") return `${lock}: a later tick was granted by now, ${row?.tick}`;
  if (because === "done" && row?.succeeded) return `${lock}: tick ${row.tick} has succeeded, attempt ${row.attempts}`;
  if (because === "done") {
    const last = row?.tick === undefined ? "" : `: the last one granted is ${showTick(row.tick)}, to ${row.owner}`;
    return `${lock} was already granted for this tick${last}`;
  }
  if (row === undefined) return `${lock} is held`;
  const until = row.expires.toISOString();
  if (row.handedOff) return `${lock} was handed off by ${row.owner}, and may be resumed until ${until}`;
  if (row.uuid === undefined) return `${lock} has no holder and stays taken until ${until}, which unlocking cannot end`;
  return `${lock} is held by ${row.owner}, whose lease runs until ${until} unless it is renewed`;
}

/** With the exit code 0 it is no matter: cron would mail the line. */
function busy(message: string, { busyCode = EXIT.busy }: RunOptions): number {
  if (busyCode !== EXIT.done) complain(message);
  return busyCode;
}
