import { readdirSync, readFileSync } from "node:fs";

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
