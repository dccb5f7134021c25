import { openSync, readSync } from "node:fs";
import type { LogEvent } from "./events.js";

const LOOK_EVERY_MS = 20;

/** Reads a log while it is written. */
export class LogFollower implements Disposable {
  /** All that has been read so far. */
  readonly events: LogEvent[] = [];
  readonly #file: number;
  readonly #listeners = new Set<(event: LogEvent) => void>();
  readonly #timer: NodeJS.Timeout;
  #rest = "";

  constructor(path: string) {
    this.#file = openSync(path, "r");
    this.#timer = setInterval(() => this.read(), LOOK_EVERY_MS);
  }

  /** Calls `listener` with each event from now on. */
  onEvent(listener: (event: LogEvent) => void): void {
    this.#listeners.add(listener);
  }

  /** The next event that is `wanted`. */
  next(wanted: (event: LogEvent) => boolean): Promise<LogEvent> {
    return new Promise((resolve) => {
      const listener = (event: LogEvent): void => {
        if (!wanted(event)) return;
        this.#listeners.delete(listener);
        resolve(event);
      };
      this.#listeners.add(listener);
    });
  }

  /** Reads what has been written since the last look. */
  read(): void {
    const chunk = Buffer.alloc(65_536);
    for (let size = 1; size > 0; ) {
      size = readSync(this.#file, chunk);
      this.#rest += chunk.toString("utf8", 0, size);
    }
    const lines = this.#rest.split("\n");
    this.#rest = lines.pop() ?? "";
    for (const line of lines) this.#tell(JSON.parse(line) as LogEvent);
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
  }

  #tell(event: LogEvent): void {
    this.events.push(event);
    for (const listener of [...this.#listeners]) listener(event);
  }
}
