import { isatty } from "node:tty";
import { findLockLost, LockTimeoutError, systemClock, } from "../index.js";
import { Child, FORWARDED } from "./child.js";
import { EXIT, exitCodeOf, Failure, NO_SEPARATOR } from "./failure.js";
import { findCommand } from "./find-command.js";
import { onTable } from "./open-table.js";
import { planRun, showTick } from "./options.js";
import { complain, mention } from "./output.js";
const NO_COMMAND = "there is no command behind --: give the one to run";
export async function run(name, command, options) {
    if (command?.[0] === undefined)
        throw new Failure(command === undefined ? NO_SEPARATOR : NO_COMMAND);
    const plan = planRun(options);
    await findCommand(command[0]);
    const child = new Child(command);
    let table;
    const onSignal = (signal) => {
        child.forward(signal);
        if (child.preventedBy !== undefined)
            table?.close({ drainMs: 0 }).catch(() => undefined);
    };
    for (const signal of FORWARDED)
        process.on(signal, onSignal);
    try {
        return await onTable(options, async ({ locks }) => {
            table = locks;
            return await underLock(locks, name, child, plan, options).catch((error) => {
                if (child.preventedBy !== undefined)
                    return exitCodeOf(child.preventedBy);
                if (error instanceof LockTimeoutError)
                    return busy(error.message, options);
                const lost = findLockLost(error);
                if (lost === undefined)
                    throw error;
                if (!child.wasToldOfLoss)
                    complain(`${lost.message}; ${command[0]} had ended by then`);
                return EXIT.lost;
            });
        });
    }
    finally {
        for (const signal of FORWARDED)
            process.off(signal, onSignal);
    }
}
const TELL_AFTER_MS = 2_000;
const NO_SUCCESS = new Error("The command has not succeeded");
async function underLock(locks, name, child, { waitMs, killAfterMs, ...lease }, options) {
    const { fair, permits, take, atLeast: holdAtLeastMs, once, every: everyMs, untilSuccess } = options;
    const lockable = permits === undefined
        ? locks.mutex(name, { ...lease, fair, fencing: true })
        : locks.semaphore(name, { ...lease, fair, permits });
    const weight = take === undefined ? undefined : { permits: take };
    let isWaiting = waitMs !== undefined;
    let code = EXIT.cannotExecute;
    const section = async (lock) => {
        isWaiting = false;
        try {
            code = await child.run(lock, killAfterMs);
        }
        finally {
            if (!child.hasBegun)
                lock.uncountAttempt();
        }
        if (code === EXIT.done)
            return;
        await lock.unlock();
        throw NO_SUCCESS;
    };
    const tells = waitMs !== undefined && (options.busyCode !== EXIT.done || isatty(2));
    const tell = async () => {
        const who = await lockable.inspect().then(holderIn, () => undefined);
        if (isWaiting)
            mention(`waiting for lock ${JSON.stringify(name)}${who === undefined ? "" : `, which ${who}`}`);
    };
    const cancel = tells ? systemClock().alarm(TELL_AFTER_MS, () => void tell()) : undefined;
    try {
        if (waitMs !== undefined) {
            await lockable.run(section, { waitMs, holdAtLeastMs, ...weight });
            return code;
        }
        const maxAttempts = typeof untilSuccess === "number" ? { maxAttempts: untilSuccess } : untilSuccess;
        const given = { holdAtLeastMs, once, everyMs, untilSuccess: maxAttempts, ...weight };
        const result = await lockable.tryRun(section, given);
        return result.ran ? code : busy(whyNot(name, result), options);
    }
    catch (error) {
        if (error === NO_SUCCESS)
            return code;
        throw error;
    }
    finally {
        isWaiting = false;
        cancel?.();
    }
}
function holderIn(state) {
    const holders = state === null ? [] : "holders" in state ? state.holders : [state];
    const [first] = holders.toSorted((one, other) => one.acquired.getTime() - other.acquired.getTime());
    return first && `${statusOf(first)}${holders.length > 1 ? `; and ${holders.length - 1} more have a permit` : ""}`;
}
function whyNot(name, { because, row }) {
    const lock = `Lock ${JSON.stringify(name)}`;
    if (because === "gave-up")
        return `${lock}: tick ${row?.tick} was run ${row?.attempts} times, and none succeeded`;
    if (because === "superseded")
        return `${lock}: a later tick was granted by now, ${row?.tick}`;
    if (because === "done" && row?.succeeded)
        return `${lock}: tick ${row.tick} has succeeded, attempt ${row.attempts}`;
    if (because === "done") {
        const last = row?.tick === undefined ? "" : `: the last one granted is ${showTick(row.tick)}, to ${row.owner}`;
        return `${lock} was already granted for this tick${last}`;
    }
    if (row === undefined)
        return `${lock} is held`;
    return `${lock} ${statusOf(row)}`;
}
function statusOf({ uuid, owner, handedOff, acquired, expires }) {
    const until = expires.toISOString();
    if (handedOff)
        return `was handed off by ${owner}, and may be resumed until ${until}`;
    if (uuid === undefined)
        return `has no holder and stays taken until ${until}, which unlocking cannot end`;
    return `is held by ${owner}, since ${acquired.toISOString()}; its lease runs until ${until} unless it is renewed`;
}
function busy(message, { busyCode = EXIT.busy }) {
    if (busyCode !== EXIT.done)
        complain(message);
    return busyCode;
}
