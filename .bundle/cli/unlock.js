import { createInterface } from "node:readline";
import { isatty } from "node:tty";
import { EXIT, Failure } from "./failure.js";
import { findLocks, lockableAt } from "./lock-view.js";
import { onTable } from "./open-table.js";
import { showDuration } from "./options.js";
import { complain, print, printable } from "./output.js";
export async function unlock(name, options) {
    const { uuid, force, now = false, yes } = options;
    if ((uuid === undefined) === (force !== true)) {
        throw new Failure("give either --uuid U, as `dynamutex inspect` shows it, or --force for whoever holds it");
    }
    return await onTable(options, async (table) => {
        const { locks } = await findLocks(table, name);
        const holders = locks.filter((lock) => lock.uuid !== undefined);
        const holder = uuid === undefined ? theOne(name, holders) : holders.find((lock) => lock.uuid === uuid);
        if (holder?.uuid === undefined) {
            const problem = locks.find((lock) => lock.problem !== undefined)?.problem;
            if (problem !== undefined)
                throw new Failure(problem);
            const blocked = locks.find(({ state }) => state === "blocked");
            const until = blocked && `; it stays taken until ${blocked.expires.toISOString()}, which unlocking cannot end`;
            complain(`${uuid === undefined ? "nobody holds" : `${uuid} does not hold`} ${name}${until ?? ""}`);
            return EXIT.no;
        }
        if (!yes)
            await confirm(questionOf(holder, now));
        if (!(await lockableAt(table.locks, holder).forceUnlock(holder.uuid, { now }))) {
            complain(`${holder.uuid} did not hold ${name} any more`);
            return EXIT.no;
        }
        print(`unlocked ${printable(name)}: ${now ? "free now" : `free in ${showDuration(holder.ttlMs)} at the latest`}\n`);
        return EXIT.done;
    });
}
function theOne(name, holders) {
    if (holders.length <= 1)
        return holders[0];
    const each = holders.map(({ uuid, owner }) => `${uuid} (${owner})`).join(", ");
    throw new Failure(`${name} has ${holders.length} holders: choose one with --uuid: ${each}`);
}
function questionOf({ name, owner, expires, state }, now) {
    const whose = `End the lock ${printable(name)} of ${printable(owner)}`;
    if (now)
        return `${whose} now? If it still runs, another may run beside it.`;
    const until = `until its lease ends: that is at ${expires.toISOString()} now`;
    return `${whose}? It stays taken ${until}, and it may be ${state === "handed-off" ? "resumed" : "renewed"}.`;
}
async function confirm(question) {
    if (!isatty(0))
        throw new Failure("there is no terminal to ask on: give --yes if you are certain");
    const terminal = createInterface({ input: process.stdin, output: process.stderr, prompt: `${question} [y/N] ` });
    terminal.prompt();
    const { value: answer = "" } = await terminal[Symbol.asyncIterator]().next();
    terminal.close();
    if (!/^y(es)?$/i.test(answer.trim()))
        throw new Failure("nothing was unlocked");
}
