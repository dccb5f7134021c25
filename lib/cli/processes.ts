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

/** The processes of a group, without those that have ended and wait to be reaped; undefined where they cannot be seen. */
export function processesIn(group: number): readonly number[] | undefined {
  if (statOf("self") === undefined) return undefined;
  const pids = readdirSync("/proc").filter((entry) => /^\d+$/.test(entry));
  return pids.map(Number).filter((pid) => {
    const stat = statOf(pid);
    return stat?.group === group && !/[ZX]/.test(stat.state);
  });
}

/** The processes of this one's group that were given a variable when their programs began; none where they cannot be seen. */
export function companionsGiven(variable: string): readonly number[] {
  const wasGiven = (pid: number): boolean => {
    try {
      return readFileSync(`/proc/${pid}/environ`, "utf8").split("\0").includes(variable);
    } catch {
      return false; // it is gone, or somebody else's
    }
  };
  return processesIn(ownStat().group)?.filter(wasGiven) ?? [];
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
  const { group, session, terminal, foreground } = ownStat();
  if (signal === "SIGINT" || signal === "SIGQUIT") return terminal !== 0 && group === foreground;
  return signal === "SIGHUP" && terminal === 0 && session !== process.pid;
}

/** Whether a terminal controls this process. */
export const hasTerminal = (): boolean => ownStat().terminal !== 0;
