import { readdirSync, readFileSync } from "node:fs";
import { isatty } from "node:tty";
function statOf(pid) {
    try {
        const [state = "", , ...numbers] = readFileSync(`/proc/${pid}/stat`, "utf8")
            .replace(/^.*\) /s, "")
            .split(" ");
        const [group = 0, session = 0, terminal = 0, foreground = 0] = numbers.map(Number);
        return { state, group, session, terminal, foreground };
    }
    catch {
        return undefined;
    }
}
function ownStat() {
    const terminal = [0, 1, 2].some((descriptor) => isatty(descriptor)) ? 1 : 0;
    return statOf("self") ?? { group: 0, session: process.pid, terminal, foreground: 0 };
}
function allPids() {
    const entries = statOf("self") === undefined ? [] : readdirSync("/proc");
    return entries.filter((entry) => /^\d+$/.test(entry)).map(Number);
}
const isAlive = (stat) => stat !== undefined && !/[ZX]/.test(stat.state);
function givenTo(pid, name) {
    try {
        const variables = readFileSync(`/proc/${pid}/environ`, "utf8").split("\0");
        return variables.find((each) => each.startsWith(`${name}=`))?.slice(name.length + 1);
    }
    catch {
        return undefined;
    }
}
export const processesGiven = (name, matches) => allPids().filter((pid) => {
    const value = givenTo(pid, name);
    return value !== undefined && matches(value) && isAlive(statOf(pid));
});
export function processesIn(group) {
    if (statOf("self") === undefined)
        return undefined;
    return allPids().filter((pid) => {
        const stat = statOf(pid);
        return stat?.group === group && isAlive(stat);
    });
}
export const companionsGiven = (name, value) => processesIn(ownStat().group)?.filter((pid) => givenTo(pid, name) === value) ?? [];
export function reachedTheGroup(signal) {
    const { group, session, terminal, foreground } = ownStat();
    if (signal === "SIGINT" || signal === "SIGQUIT")
        return terminal !== 0 && group === foreground;
    return signal === "SIGHUP" && terminal === 0 && session !== process.pid;
}
export const hasTerminal = () => ownStat().terminal !== 0;
