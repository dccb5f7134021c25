import type { Socket } from "node:net";

/** What becomes of the packets of a client or a connection: they vanish, or are answered with a reset. */
export type Cut = "hang" | "reset";

interface Caller {
  readonly request: { readonly client: string };
  readonly connection: Socket | undefined;
  cut(): void;
}

/** Which clients can reach the proxy, and hear from it, and on which connections. */
export class Links {
  /** How many connections clients have made so far. */
  made = 0;
  readonly #cuts = new Map<string | undefined, Cut>();
  readonly #swallowed = new Set<Caller>();
  /** The open connections, and the client that has used each. */
  readonly #open = new Map<Socket, string | undefined>();
  readonly #dead = new WeakMap<Socket, Cut>();

  /** How many connections are open. */
  get open(): number {
    return this.#open.size;
  }

  add(connection: Socket): void {
    this.made += 1;
    this.#open.set(connection, undefined);
    connection.once("close", () => this.#open.delete(connection));
  }

  /** Without a client: all of them. */
  cut(client: string | undefined, how: Cut): void {
    this.#cuts.set(client, how);
  }

  /** What vanished is lost for good: its sockets are reset now, so that nobody waits for it any longer. */
  heal(client: string | undefined): void {
    this.#cuts.delete(client);
    for (const caller of this.#swallowed) {
      if (this.#cutOf(caller) !== undefined) continue;
      this.#swallowed.delete(caller);
      caller.cut();
    }
  }

  /** The connections that are open now are dead for good, which their client learns at the next use. New ones work. */
  kill(client: string | undefined, how: Cut): void {
    for (const [connection, user] of this.#open) {
      if (client === undefined || user === client) this.#dead.set(connection, how);
    }
  }

  isDead({ connection }: Caller): boolean {
    return connection !== undefined && this.#dead.has(connection);
  }

  /** Whether anything passes between this caller and the proxy now; if not, its packet is lost. */
  admit(caller: Caller): boolean {
    const { connection, request } = caller;
    if (connection !== undefined && this.#open.has(connection)) this.#open.set(connection, request.client);
    const how = (connection && this.#dead.get(connection)) ?? this.#cutOf(caller);
    if (how === "reset") caller.cut();
    if (how === "hang" && !this.isDead(caller)) this.#swallowed.add(caller);
    return how === undefined;
  }

  #cutOf({ request }: Caller): Cut | undefined {
    return this.#cuts.get(request.client) ?? this.#cuts.get(undefined);
  }
}
