import { styleText } from "node:util";
import type { LogEvent } from "./events.js";

type Style = Parameters<typeof styleText>[0];

/** What a host's column shows after an event. A kind that is not here leaves it as it was. */
const MARKS: Partial<Record<LogEvent["kind"], string>> = {
  started: "·",
  began: "█",
  finished: "·",
  lost: "·",
  killed: "×",
  frozen: "▒",
  woken: "░",
  stopped: " ",
};

const STYLES: Partial<Record<LogEvent["kind"], Style>> = {
  began: ["green", "bold"],
  finished: "green",
  lost: ["magenta", "bold"],
  killed: ["red", "bold"],
  frozen: ["cyan", "bold"],
  woken: ["cyan", "bold"],
  failed: ["red", "bold"],
  left: "dim",
  started: "dim",
  stopped: "dim",
};

/** Who held the lock when: a line for each event, a column for each host. */
export class Timeline {
  readonly #hosts: readonly string[];
  readonly #marks: Map<string, string>;
  readonly #colours: boolean;
  #start: number | undefined;

  constructor(hosts: readonly string[], { colours }: { readonly colours: boolean }) {
    this.#hosts = hosts;
    this.#marks = new Map(hosts.map((host) => [host, " "]));
    this.#colours = colours;
  }

  header(): string {
    return this.#styled("dim", ["seconds", ...this.#hosts].join("  "));
  }

  line(event: LogEvent): string {
    this.#start ??= event.at;
    this.#marks.set(event.host, MARKS[event.kind] ?? this.#marks.get(event.host) ?? " ");
    const time = ((event.at - this.#start) / 1_000).toFixed(3).padStart("seconds".length);
    const marks = this.#hosts.map((host) => this.#mark(this.#marks.get(host) ?? " "));
    const text = this.#styled(STYLES[event.kind], `${event.host} ${said(event)}`);
    return [this.#styled("dim", time), ...marks, text].join("  ");
  }

  #mark(mark: string): string {
    const style: Style | undefined = mark === "█" ? "green" : mark === "×" ? "red" : mark === "·" ? "dim" : "cyan";
    return this.#styled(style, mark);
  }

  #styled(style: Style | undefined, text: string): string {
    return style === undefined || !this.#colours ? text : styleText(style, text);
  }
}

function said(event: LogEvent): string {
  switch (event.kind) {
    case "started":
      return "has started";
    case "began":
      return `takes the lock and runs the job of ${clockTime(event.tick)}`;
    case "worked":
      return "works";
    case "finished":
      return "is done and releases the lock";
    case "lost":
      return `is told that it has lost the lock: ${event.reason}`;
    case "left":
      return `leaves ${clockTime(event.tick)} to ${event.to}`;
    case "failed":
      return `could not do its turn: ${event.message}`;
    case "stopped":
      return "has stopped";
    case "killed":
      return "is killed while it holds the lock (SIGKILL)";
    case "frozen":
      return "is frozen while it holds the lock (SIGSTOP)";
    case "woken":
      return "is woken and believes that it holds the lock (SIGCONT)";
    default:
      return event satisfies never;
  }
}

function clockTime(tick: number): string {
  return new Date(tick).toTimeString().slice(0, 8);
}
