import { readdirSync, readFileSync } from "node:fs";
import { isatty } from "node:tty";

/** What the kernel says of a process. */
export interface ProcessStat {
  readonly state: string;
  readonly group: number;
  readonly session: number;
  /** The terminal that controls the session; 0 if there is none. */
  readonly terminal: number;
  /** The group that the terminal's keys go to. */
  readonly foreground: number;
}

/** Undefined if it is gone, and where the kernel does not show processes as files. */
export function statOf(pid: number | "self"): ProcessStat | undefined {
  try {
    // The name of the program is in brackets, and may hold anything. These follow it:
    const [state = "", , ...numbers] = readFileSync(`/proc/${pid}/stat`, "utf8")
      .replace(/^.*\) /s, "")
      .split(" ");
    const [group = 0, session = 0, terminal = 0, foreground = 0] = numbers.map(Number);
    return { state, group, session, terminal, foreground };
  } catch {
    return undefined;
  }
}

/** The processes of a group, without those that have ended and wait to be reaped; undefined where they cannot be seen. */
export function processesIn(group: number): readonly number[] | undefined {
  if (statOf("self") === undefined) return undefined;
  const pids = readdirSync("/proc").filter((entry) => /^\d+$/.test(entry));
  return pids.map(Number).filter((pid) => {
    const stat = statOf(pid);
    return stat?.group === group && !/[ZX]/.test(stat.state);
  });
}

/** Whether a process was given this variable when its program began. */
export function wasGiven(pid: number, variable: string): boolean {
  try {
    return readFileSync(`/proc/${pid}/environ`, "utf8").split("\0").includes(variable);
  } catch {
    return false; // it is gone, or somebody else's
  }
}

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
  const standing = statOf("self");
  switch (signal) {
    case "SIGINT":
    case "SIGQUIT":
      if (standing === undefined) return hasTerminalStream();
      return standing.terminal !== 0 && standing.group === standing.foreground;
    case "SIGHUP":
      return standing !== undefined && standing.terminal === 0 && standing.session !== process.pid;
    default:
      return false;
  }
}

/** Whether a terminal controls this process. */
export function hasTerminal(): boolean {
  const standing = statOf("self");
  return standing === undefined ? hasTerminalStream() : standing.terminal !== 0;
}

const hasTerminalStream = (): boolean => [0, 1, 2].some((descriptor) => isatty(descriptor));
