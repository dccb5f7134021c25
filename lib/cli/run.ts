import { isatty } from "node:tty";
import type { HeldLock as Handle } from "../holding/handle.js";
import {
  findLockLost,
  type Lockable,
  type LockInfo,
  type LockState,
  type LockTable,
  LockTimeoutError,
  type Mutex,
  type Semaphore,
  type SemaphoreState,
  systemClock,
  type TryRun,
} from "../index.js";
import { Child, FORWARDED, type HeldLock } from "./child.js";
import { EXIT, exitCodeOf, Failure, NO_SEPARATOR } from "./failure.js";
import { findCommand } from "./find-command.js";
import { onTable } from "./open-table.js";
import { planRun, type RunOptions, type RunPlan, showTick } from "./options.js";
import { complain, mention } from "./output.js";

const NO_COMMAND = "there is no command behind --: give the one to run";

/** Runs a command while holding a lock. @param command the words behind `--`; undefined without a `--`. @returns the exit code. */
export async function run(name: string, command: readonly string[] | undefined, options: RunOptions): Promise<number> {
  if (command?.[0] === undefined) throw new Failure(command === undefined ? NO_SEPARATOR : NO_COMMAND);
  const plan = planRun(options);
  await findCommand(command[0]);
  const child = new Child(command); // before the environment gets what is put there for the SDK
  let table: LockTable | undefined;
  const onSignal = (signal: NodeJS.Signals): void => {
    child.forward(signal);
    // A call that waits is refused then, and what it has sent is taken back.
    if (child.preventedBy !== undefined) table?.close({ drainMs: 0 }).catch(() => undefined);
  };
  for (const signal of FORWARDED) process.on(signal, onSignal);
  try {
    return await onTable(options, async ({ locks }) => {
      table = locks;
      return await underLock(locks, name, child, plan, options).catch((error: unknown) => {
        if (child.preventedBy !== undefined) return exitCodeOf(child.preventedBy);
        if (error instanceof LockTimeoutError) return busy(error.message, options);
        const lost = findLockLost(error);
        if (lost === undefined) throw error;
        if (!child.wasToldOfLoss) complain(`${lost.message}; ${command[0]} had ended by then`);
        return EXIT.lost;
      });
    });
  } finally {
    for (const signal of FORWARDED) process.off(signal, onSignal);
  }
}

/** After how long a wait says whom it waits for. */
const TELL_AFTER_MS = 2_000;

/** Ends a section whose command has another exit code than 0: its tick has not succeeded. */
const NO_SUCCESS = new Error("The command has not succeeded");

/** What the lock of a run can do that is not public: no program but this one starts another and learns that it did not begin. */
type Countable = Pick<Handle, "uncountAttempt">;

/** @returns the exit code. */
async function underLock(
  locks: LockTable,
  name: string,
  child: Child,
  { waitMs, killAfterMs, ...lease }: RunPlan,
  options: RunOptions,
): Promise<number> {
  const { fair, permits, per: perMs, take, atLeast: holdAtLeastMs, once, every: everyMs, untilSuccess } = options;
  const lockable: Lockable<HeldLock> & Pick<Mutex | Semaphore, "inspect"> =
    permits === undefined
      ? locks.mutex(name, { ...lease, fair, fencing: true })
      : locks.semaphore(name, { ...lease, fair, permits, perMs });
  // A mutex refuses the option.
  const weight = take === undefined ? undefined : { permits: take };
  let isWaiting = waitMs !== undefined;
  let code: number = EXIT.cannotExecute; // until it has begun
  const section = async (lock: HeldLock): Promise<void> => {
    isWaiting = false;
    try {
      code = await child.run(lock, killAfterMs);
    } finally {
      // Not by its exit code: a script that ends with 127 has run, and may have missed a program at its end.
      if (!child.hasBegun) (lock as HeldLock & Countable).uncountAttempt();
    }
    if (code === EXIT.done) return;
    // What is thrown below would hide a loss that only the release finds.
    await lock.unlock();
    throw NO_SUCCESS;
  };
  // Whoever wants silence where the lock is busy, such as cron, wants it here.
  const tells = waitMs !== undefined && (options.busyCode !== EXIT.done || isatty(2));
  const tell = async (): Promise<void> => {
    const lockName = JSON.stringify(name);
    const waiting = (state: LockState | SemaphoreState | null): string => {
      const who = holderIn(state);
      return `waiting for lock ${lockName}${who === undefined ? "" : `, which ${who}`}`;
    };
    const told = await lockable.inspect().then(waiting, () => `no answer from the table about lock ${lockName} so far`);
    if (isWaiting) mention(told);
  };
  const cancel = tells ? systemClock().alarm(TELL_AFTER_MS, () => void tell()) : undefined;
  try {
    if (waitMs !== undefined) {
      await lockable.run(section, { waitMs, holdAtLeastMs, ...weight });
      return code;
    }
    const maxAttempts = typeof untilSuccess === "number" ? { maxAttempts: untilSuccess } : untilSuccess;
    // All but the first are those of a mutex: with permits there is no tick.
    const given = { holdAtLeastMs, once, everyMs, untilSuccess: maxAttempts, ...weight };
    const result = await lockable.tryRun(section, given);
    return result.ran ? code : busy(whyNot(name, result), options);
  } catch (error) {
    if (error === NO_SUCCESS) return code;
    throw error;
  } finally {
    isWaiting = false;
    cancel?.();
  }
}

/** Who has the lock, and since when; of several, the one that has had it for the longest time. */
function holderIn(state: LockState | SemaphoreState | null): string | undefined {
  const holders = state === null ? [] : "holders" in state ? state.holders : [state];
  const [first] = holders.toSorted((one, other) => one.acquired.getTime() - other.acquired.getTime());
  return (
    first &&
    `${statusOf(first)}${holders.length > 1 ? `; and ${holders.length - 1} more ${holders.length > 2 ? "have" : "has"} permits` : ""}`
  );
}

/** Why the command was not run, in one line. */
function whyNot(name: string, { reason, holder }: Extract<TryRun<void>, { readonly ran: false }>): string {
  const lock = `Lock ${JSON.stringify(name)}`;
  if (reason === "gave-up")
    return `${lock}: tick ${holder?.tick} was run ${holder?.attempts} times, and none succeeded`;
  if (reason === "superseded") return `${lock}: a later tick was granted by now, ${holder?.tick}`;
  if (reason === "done" && holder?.succeeded)
    return `${lock}: tick ${holder.tick} has succeeded, attempt ${holder.attempts}`;
  if (reason === "done") {
    const last =
      holder?.tick === undefined ? "" : `: the last one granted is ${showTick(holder.tick)}, to ${holder.owner}`;
    return `${lock} was already granted for this tick${last}`;
  }
  if (holder === undefined) return `${lock} is held`;
  return `${lock} ${statusOf(holder)}`;
}

/** What stands behind the name of a lock that is taken. */
function statusOf({ uuid, owner, handedOff, acquired, expires }: LockInfo): string {
  const until = expires.toISOString();
  if (handedOff) return `was handed off by ${owner}, and may be resumed until ${until}`;
  if (uuid === undefined) return `has no holder and stays taken until ${until}, which unlocking cannot end`;
  return `is held by ${owner}, since ${acquired.toISOString()}; its lease runs until ${until} unless it is renewed`;
}

/** With the exit code 0 it is no matter: cron would mail the line. */
function busy(message: string, { busyCode = EXIT.busy }: RunOptions): number {
  if (busyCode !== EXIT.done) complain(message);
  return busyCode;
}
