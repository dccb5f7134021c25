/** How often each state of interest was reached, so that a run that never saw a takeover is visible. */
export class Coverage {
  readonly #counts = new Map<string, number>();

  count(what: string, by = 1): void {
    this.#counts.set(what, (this.#counts.get(what) ?? 0) + by);
  }

  of(what: string): number {
    return this.#counts.get(what) ?? 0;
  }

  add(other: Coverage): void {
    for (const [what, count] of other.#counts) this.count(what, count);
  }

  /** Sorted by name, so that two reports can be compared line by line. */
  get entries(): readonly (readonly [string, number])[] {
    return [...this.#counts].sort(([one], [other]) => (one < other ? -1 : 1));
  }

  toString(): string {
    return this.entries.map(([what, count]) => `${String(count).padStart(9)}  ${what}`).join("\n");
  }
}
