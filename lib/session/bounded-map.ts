/** A map that keeps its latest entries: of more than `most`, those that were set the longest ago are removed. */
export class BoundedMap<Key, Value> extends Map<Key, Value> {
  readonly #most: number;
  readonly #spare: number;

  constructor(most: number) {
    super();
    this.#most = most;
    // Each removal begins at the front, where the earlier ones have left holes to step over: so a large map removes many at once.
    this.#spare = Math.floor(most / 16);
  }

  override set(key: Key, value: Value): this {
    this.delete(key);
    super.set(key, value);
    if (this.size <= this.#most + this.#spare) return this;
    for (const oldest of this.keys()) {
      if (this.size <= this.#most) break;
      this.delete(oldest);
    }
    return this;
  }
}
