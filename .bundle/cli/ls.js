import { isatty } from "node:tty";
import { styleText } from "node:util";
import { EXIT } from "./failure.js";
import { countWaiters, inOrder, leftOf, viewOf } from "./lock-view.js";
import { onTable } from "./open-table.js";
import { arrayToJson, print, printable } from "./output.js";
const WATCH_MS = 2_000;
export async function ls(options) {
    return await onTable(options, async (table) => {
        for (;;) {
            print(textOf(await look(table, options), options));
            if (!options.watch)
                return EXIT.done;
            await table.clock.sleep(WATCH_MS);
        }
    });
}
async function look({ locks, clock, keys }, { prefix, kept }) {
    const listed = [];
    for await (const lock of locks.list({ prefix, kept }))
        listed.push(lock);
    const waiting = keys.sort !== undefined ? await countWaiters(locks, listed) : undefined;
    const bounds = clock.wall();
    return inOrder(listed.map((lock) => viewOf(lock, bounds, waiting?.get(lock))));
}
function textOf(views, { json, watch, kept, table = "" }) {
    if (json)
        return `${arrayToJson(views)}\n`;
    if (!watch || !isatty(1))
        return `${linesOf(views, { kept }).join("\n")}\n${watch ? "\n" : ""}`;
    const [rows, columns] = [process.stdout.rows || 24, process.stdout.columns || 80];
    const title = `${views.length} locks in table ${printable(table)}, every ${WATCH_MS / 1_000} s, until Ctrl-C`;
    return inPlace([title.slice(0, columns), "", ...linesOf(views, { columns, kept })], rows);
}
const HEADINGS = ["NAME", "KIND", "STATE", "LEFT", "WAITING", "OWNER", "SINCE", "LAST RUN"];
const STYLES = {
    held: "reset",
    "handed-off": "yellow",
    expired: "red",
    blocked: "yellow",
    free: "dim",
    bad: "red",
};
export function linesOf(views, { columns, kept } = {}) {
    const all = [HEADINGS, ...views.map(cellsOf)];
    const rows = kept ? all : all.map((cells) => cells.slice(0, -1));
    const widths = HEADINGS.map((_, column) => Math.max(...rows.map((cells) => cells[column]?.length ?? 0)));
    return rows.map((cells, index) => {
        const padded = cells.map((cell, column) => cell.padEnd(widths[column] ?? 0));
        const line = padded.join("  ").trimEnd().slice(0, columns);
        const state = views[index - 1]?.state;
        return styleText(state === undefined ? "bold" : STYLES[state], line);
    });
}
function cellsOf(view) {
    const { kind, state, owner, acquired, waiting } = view;
    const since = state === "bad" ? "-" : inSeconds(acquired);
    const taken = [
        printable(view.name),
        kind,
        state,
        leftOf(view),
        waiting ? String(waiting) : "-",
        printable(owner),
        since,
    ];
    return [...taken, lastRunOf(view)];
}
const inSeconds = (date) => date.toISOString().replace(/\.\d+Z$/, "Z");
const ENDS = { true: " succeeded", false: " due", undefined: "" };
const lastRunOf = ({ lastRun, succeeded }) => lastRun === undefined ? "-" : `${inSeconds(lastRun.began)}${ENDS[`${succeeded}`]}`;
const HOME = "\u001b[H";
const CLEAR_LINE = "\u001b[K";
const CLEAR_BELOW = "\u001b[J";
export function inPlace(lines, rows) {
    const room = rows - 1;
    const rest = lines.length - room + 1;
    const shown = lines.length <= room ? lines : [...lines.slice(0, room - 1), `… and ${rest} more: use --prefix`];
    return `${HOME}${shown.map((line) => `${line}${CLEAR_LINE}\n`).join("")}${CLEAR_BELOW}`;
}
