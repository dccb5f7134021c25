/** A moment at which a gateway forgets all idle connections, and what becomes of the next request on one. */
export interface ConnectionDeath {
  readonly atMs: number;
  readonly how: "reset" | "silent";
}

/** The connections of one client. A request goes out on the one that became idle last, and on a new one where there is none. */
export class ConnectionPool {
  /** When each became idle, in that order. */
  #idleSince: number[] = [];

  /** Takes a connection. @returns what becomes of a request on it, where it is dead. */
  take(now: number, deaths: readonly ConnectionDeath[]): ConnectionDeath["how"] | undefined {
    const since = this.#idleSince.pop();
    if (since === undefined) return undefined;
    return deaths.find(({ atMs }) => since <= atMs && atMs <= now)?.how;
  }

  /** Gives a connection back. */
  give(now: number): void {
    this.#idleSince.push(now);
  }

  /** Closes those that have been quiet since before a request left which got no reply. */
  closeQuiet(leftAt: number): void {
    this.#idleSince = this.#idleSince.filter((since) => since >= leftAt);
  }
}
