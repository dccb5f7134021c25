import type { LogEvent } from "./events.js";

/** One run of the job, as the log shows it. */
export interface Section {
  readonly host: string;
  readonly tick: number;
  readonly began: number;
  /** When it is over for certain: from then on another host may work. */
  readonly over: number;
  readonly ending: "finished" | "lost" | "killed" | "unknown";
}

/**
 * The sections in a log, in the order in which they began.
 *
 * A section lasts as long as its host acts on it: whoever goes on working after his lease has ended is caught by that.
 * Where its host does nothing more, because it is frozen or does not get to run, it lasts until its lease has ended;
 * where its host was killed before that, until then.
 */
export function sectionsOf(log: readonly LogEvent[]): readonly Section[] {
  const sections: Section[] = [];
  const open = new Map<string, OpenSection>();
  const close = (host: string, ending: Section["ending"], at: number): void => {
    const section = open.get(host);
    if (section === undefined) return;
    open.delete(host);
    const over = Math.max(section.acted, Math.min(at, section.leaseEnds));
    sections.push({ host, tick: section.tick, began: section.began, over, ending });
  };
  for (const event of log) {
    const { host, at } = event;
    switch (event.kind) {
      case "began":
        close(host, "unknown", at);
        open.set(host, { tick: event.tick, began: at, acted: at, leaseEnds: at + event.remainingMs });
        break;
      case "worked":
        acted(open.get(host), at, at + event.remainingMs);
        break;
      case "finished":
        acted(open.get(host), at, at);
        close(host, "finished", at);
        break;
      case "lost":
      case "killed":
        close(host, event.kind, at);
        break;
    }
  }
  for (const host of [...open.keys()]) close(host, "unknown", Number.POSITIVE_INFINITY);
  return sections.sort((one, other) => one.began - other.began);
}

interface OpenSection {
  readonly tick: number;
  readonly began: number;
  acted: number;
  leaseEnds: number;
}

function acted(section: OpenSection | undefined, at: number, leaseEnds: number): void {
  if (section === undefined) return;
  section.acted = at;
  section.leaseEnds = Math.max(section.leaseEnds, leaseEnds);
}
