/** What a partition does to the packets of a client: they vanish, or its sockets are reset. */
export type Cut = "hang" | "reset";

interface Caller {
  readonly request: { readonly client: string };
  cut(): void;
}

/** Which clients can reach the proxy, and hear from it. */
export class Links {
  readonly #cuts = new Map<string | undefined, Cut>();
  readonly #swallowed = new Set<Caller>();

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

  /** Whether anything passes between this caller and the proxy now; if not, its packet is lost. */
  admit(caller: Caller): boolean {
    const how = this.#cutOf(caller);
    if (how === "reset") caller.cut();
    if (how === "hang") this.#swallowed.add(caller);
    return how === undefined;
  }

  #cutOf({ request }: Caller): Cut | undefined {
    return this.#cuts.get(request.client) ?? this.#cuts.get(undefined);
  }
}
