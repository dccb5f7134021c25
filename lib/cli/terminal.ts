import { readFileSync } from "node:fs";
import { isatty } from "node:tty";

/** What the kernel says of this process and its terminal. */
interface Standing {
  /** The process group: the command under the lock is in it too. */
  readonly group: number;
  readonly session: number;
  /** The terminal that controls the session; 0 if there is none. */
  readonly terminal: number;
  /** The group that the terminal's keys go to. */
  readonly foreground: number;
}

/**
 * Whether a signal that has just come has reached the command under the lock as well, because a terminal sent it to the
 * whole group:
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
export function reachedTheGroup(signal: NodeJS.Signals, hadTerminal: boolean): boolean {
  const standing = standingNow();
  switch (signal) {
    case "SIGINT":
    case "SIGQUIT":
      if (standing === undefined) return hasTerminalStream();
      return standing.terminal !== 0 && standing.group === standing.foreground;
    case "SIGHUP":
      return standing !== undefined && hadTerminal && standing.terminal === 0 && standing.session !== process.pid;
    default:
      return false;
  }
}

/** Whether a terminal controls this process. */
export function hasTerminal(): boolean {
  const standing = standingNow();
  return standing === undefined ? hasTerminalStream() : standing.terminal !== 0;
}

const hasTerminalStream = (): boolean => [0, 1, 2].some((descriptor) => isatty(descriptor));

/** Undefined where the kernel does not show its processes as files. */
function standingNow(): Standing | undefined {
  try {
    // Behind the name of the program, which is in brackets and may hold anything: state, parent, and these.
    const fields = readFileSync("/proc/self/stat", "utf8")
      .replace(/^.*\) /s, "")
      .split(" ")
      .map(Number);
    const [, , group = 0, session = 0, terminal = 0, foreground = 0] = fields;
    return { group, session, terminal, foreground };
  } catch {
    return undefined;
  }
}
