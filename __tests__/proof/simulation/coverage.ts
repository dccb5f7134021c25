/** How often each state of interest was reached, so that a run that never saw a takeover is visible. */
export class Coverage {
  readonly #counts = new Map<string, { value: number }>();

  count(what: string, by = 1): void {
    const count = this.#counts.get(what);
    if (count === undefined) this.#counts.set(what, { value: by });
    else count.value += by;
  }

  of(what: string): number {
    return this.#counts.get(what)?.value ?? 0;
  }

  /** Of all kinds of one thing: “losses” sums “losses: expired” and the like. */
  sumOf(what: string): number {
    const kinds = this.entries.filter(([name]) => name === what || name.startsWith(`${what}: `));
    return kinds.reduce((sum, [, count]) => sum + count, 0);
  }

  add(other: Coverage): void {
    for (const [what, { value }] of other.#counts) this.count(what, value);
  }

  /** Sorted by name, so that two reports can be compared line by line. */
  get entries(): readonly (readonly [string, number])[] {
    const counts = [...this.#counts].map(([what, { value }]) => [what, value] as const);
    return counts.sort(([one], [other]) => (one < other ? -1 : 1));
  }

  toString(): string {
    return this.entries.map(([what, count]) => `${String(count).padStart(9)}  ${what}`).join("\n");
  }
}
