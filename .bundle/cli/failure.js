import { constants } from "node:os";
export const EXIT = {
    done: 0,
    no: 1,
    busy: 75,
    lost: 124,
    failed: 125,
    cannotExecute: 126,
    notFound: 127,
};
export const exitCodeOf = (signal) => 128 + constants.signals[signal];
export const NO_SEPARATOR = "there is no command: put -- before the command that is run: dynamutex run NAME -- COMMAND";
export class Failure extends Error {
    name = "Failure";
    exitCode;
    constructor(message, exitCode = EXIT.failed, options) {
        super(message, options);
        this.exitCode = exitCode;
    }
}
const FLAGS = { name: "NAME", tableName: "--table", holdAtLeastMs: "--at-least" };
function flagOf(option) {
    const words = option.replace(/Ms$/, "").replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
    return FLAGS[option] ?? `--${words}`;
}
export function complaintOf(error) {
    if (!(error instanceof Error))
        return String(error);
    const { option } = error;
    if (option === undefined)
        return error.message || error.name;
    return flagOf(option.replace(/\..*/, "")) + error.message.slice(option.length);
}
