import { isatty } from "node:tty";
import { statOf } from "./processes.js";

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
