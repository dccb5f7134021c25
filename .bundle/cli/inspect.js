import { EXIT } from "./failure.js";
import { findLocks, isTaken, leftOf } from "./lock-view.js";
import { onTable } from "./open-table.js";
import { showTick } from "./options.js";
import { print, printable, toJson } from "./output.js";
export async function inspect(name, options) {
    const found = await onTable(options, (table) => findLocks(table, name));
    print(options.json ? `${toJson({ name, ...found })}\n` : textOf(name, found));
    return found.locks.some(isTaken) ? EXIT.done : EXIT.no;
}
function textOf(name, { locks, waiters }) {
    if (locks.length === 0)
        return `${printable(name)} is free: nothing is recorded under this name\n`;
    const queue = waiters.map(({ kind, owner, since, problem }) => problem === undefined
        ? line("waits", `${printable(owner)}, for ${kind}, since ${since.toISOString()}`)
        : line("problem", printable(problem)));
    return [...locks.map(lockText), ...queue].join("");
}
const line = (label, text) => `  ${label.padEnd(8)} ${text}\n`;
const TICK_STATES = {
    true: "the tick has succeeded",
    false: "the tick is due until it succeeds",
    undefined: "only untilSuccess records whether it succeeded",
};
function runText({ lastRun, succeeded }) {
    const run = lastRun && `by ${printable(lastRun.owner)}, from ${lastRun.began.toISOString()}; `;
    return `${run ?? ""}${TICK_STATES[`${succeeded}`]}`;
}
function lockText(lock) {
    const { name, kind, state, uuid, owner, acquired, expires, tick, attempts, data, problem } = lock;
    const title = `${printable(name)}: ${kind}, ${state}\n`;
    if (problem !== undefined)
        return title + line("problem", printable(problem));
    return [
        title,
        line("owner", `${printable(owner)}${uuid === undefined || state === "handed-off" ? ", the last one" : ""}`),
        uuid === undefined ? "" : line("uuid", printable(uuid)),
        line("since", acquired.toISOString()),
        state === "free" ? "" : line("expires", `${expires.toISOString()}, ${leftOf(lock)}`),
        tick === undefined ? "" : line("tick", showTick(tick)),
        tick === undefined ? "" : line("last run", runText(lock)),
        attempts === undefined ? "" : line("attempts", String(attempts)),
        data === undefined ? "" : line("data", toJson(data)),
    ].join("");
}
