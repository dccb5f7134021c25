/** How many of the latest answers count: enough for a percentile, few enough to follow a table that slows down. */
const REMEMBERED = 64;

const SLOW_SHARE = 0.95;

/** How long the latest answers took, in ms. */
export class Latencies {
  /** In order of arrival; the oldest is overwritten next, once the ring is full. */
  readonly #ring: number[] = [];
  readonly #sorted: number[] = [];
  #next = 0;

  add(ms: number): void {
    const oldest = this.#ring[this.#next];
    if (oldest !== undefined) this.#sorted.splice(this.#placeOf(oldest), 1);
    this.#ring[this.#next] = ms;
    this.#sorted.splice(this.#placeOf(ms), 0, ms);
    this.#next = (this.#next + 1) % REMEMBERED;
  }

  /** The median; undefined before the first answer. */
  get typicalMs(): number | undefined {
    return this.#sorted[(this.#sorted.length - 1) >>> 1];
  }

  /** The 95th percentile; undefined before the first answer. */
  get slowMs(): number | undefined {
    return this.#sorted[Math.ceil(this.#sorted.length * SLOW_SHARE) - 1];
  }

  /** The index of the first that is no shorter. */
  #placeOf(ms: number): number {
    let low = 0;
    let high = this.#sorted.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#sorted[middle] ?? ms) < ms) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
