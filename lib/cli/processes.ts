import { readdirSync, readFileSync } from "node:fs";
import { isatty } from "node:tty";

/** What the kernel says of a process; undefined if it is gone, and where the kernel does not show processes as files. */
function statOf(pid: number | "self") {
  try {
    // The name of the program is in brackets, and may hold anything. These follow it:
    const [state = "", , ...numbers] = readFileSync(`/proc/${pid}/stat`, "utf8")
      .replace(/^.*\) /s, "")
      .split(" ");
    // The terminal controls the session, and is 0 if there is none. The terminal's keys go to the group in the foreground.
    const [group = 0, session = 0, terminal = 0, foreground = 0] = numbers.map(Number);
    return { state, group, session, terminal, foreground };
  } catch {
    return undefined;
  }
}

/**
 * The same of this process. Where the kernel does not tell, a terminal controls it if one of its streams is a terminal, and it is
 * taken to be in the foreground and to lead its session.
 */
function ownStat() {
  const terminal = [0, 1, 2].some((descriptor) => isatty(descriptor)) ? 1 : 0;
  return statOf("self") ?? { group: 0, session: process.pid, terminal, foreground: 0 };
}

function allPids(): readonly number[] {
  const entries = statOf("self") === undefined ? [] : readdirSync("/proc");
  return entries.filter((entry) => /^\d+$/.test(entry)).map(Number);
}

const isAlive = (stat: ReturnType<typeof statOf>): boolean => stat !== undefined && !/[ZX]/.test(stat.state);

/** The value of a variable when a process's program began; undefined if it was not given, or cannot be seen. */
function givenTo(pid: number, name: string): string | undefined {
  try {
    const variables = readFileSync(`/proc/${pid}/environ`, "utf8").split("\0");
    return variables.find((each) => each.startsWith(`${name}=`))?.slice(name.length + 1);
  } catch {
    return undefined; // it is gone, or somebody else's
  }
}

/** The processes that were given a variable with such a value when their programs began; none where they cannot be seen. */
export const processesGiven = (name: string, matches: (value: string) => boolean): readonly number[] =>
  allPids().filter((pid) => {
    const value = givenTo(pid, name);
    return value !== undefined && matches(value) && isAlive(statOf(pid));
  });

/** The processes of a group, without those that have ended and wait to be reaped; undefined where they cannot be seen. */
export function processesIn(group: number): readonly number[] | undefined {
  if (statOf("self") === undefined) return undefined;
  return allPids().filter((pid) => {
    const stat = statOf(pid);
    return stat?.group === group && isAlive(stat);
  });
}

/** The same among the processes of this one's group. */
export const companionsGiven = (name: string, value: string | undefined): readonly number[] =>
  processesIn(ownStat().group)?.filter((pid) => givenTo(pid, name) === value) ?? [];

/**
 * Whether a signal that has just come has reached the command under the lock as well, because a terminal sent it to the
 * process group that the two share:
 *
 * | signal    | sent by the terminal if                                                                             |
 * |-----------|-----------------------------------------------------------------------------------------------------|
 * | INT, QUIT | this group is in the foreground: Ctrl-C, Ctrl-\                                                      |
 * | HUP       | the terminal is gone, and this process does not lead the session: a leader may be the only one told |
 * | others    | never                                                                                               |
 *
 * The answer is of now. Where the session has ended since the key was pressed, as with a shell that leads it and dies of
 * Ctrl-\, INT and QUIT may be passed on though they have come: twice is better than never.
 */
export function reachedTheGroup(signal: NodeJS.Signals): boolean {
  const { group, session, terminal, foreground } = ownStat();
  if (signal === "SIGINT" || signal === "SIGQUIT") return terminal !== 0 && group === foreground;
  return signal === "SIGHUP" && terminal === 0 && session !== process.pid;
}

/** Whether a terminal controls this process. */
export const hasTerminal = (): boolean => ownStat().terminal !== 0;
