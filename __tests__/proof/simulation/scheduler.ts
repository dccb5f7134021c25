interface Entry {
  readonly time: number;
  readonly order: number;
  /** Whether it may wake code that awaits: then everything that follows runs before the next entry. */
  readonly wakes: boolean;
  act: (() => void) | undefined;
}

/** How many immediates are queued at once. */
const TURNS = 64;

/** Virtual time: a heap of what is to happen, and nothing happens at any other moment. */
export class Scheduler {
  readonly #heap: Entry[] = [];
  #now = 0;
  #order = 0;
  #steps = 0;
  /** Node's turns that are queued, and who goes on at the next. */
  #turns = 0;
  #goOn: (() => void) | undefined;
  /** Whether the last entry has woken code that awaits. */
  #isWoken = false;

  /** Milliseconds since the world began, on the table's clock, which is the true one. */
  get now(): number {
    return this.#now;
  }

  /** How many entries have happened. */
  get steps(): number {
    return this.#steps;
  }

  /** Something that no host sees happen. Entries of one moment happen in the order in which they were made. */
  at(time: number, act: () => void): () => void {
    return this.#add(time, act, false);
  }

  /** Something that code of a host may be waiting for. */
  wakeAt(time: number, act: () => void): () => void {
    return this.#add(time, act, true);
  }

  /**
   * Lets things happen until `until()` holds or time is up; `observe` sees the world after each.
   * @returns whether `until()` held.
   */
  run(limit: number, until: () => boolean, observe: () => void): Promise<boolean> {
    return new Promise((resolve, reject) => {
      const goOn = (): void => {
        try {
          if (this.#isWoken) observe();
          const isMet = this.#goOnUntil(limit, until, observe);
          if (isMet === undefined) this.#drain(goOn);
          else resolve(isMet);
        } catch (error) {
          reject(error);
        }
      };
      this.#isWoken = false;
      this.#drain(goOn);
    });
  }

  /** @returns undefined where it has woken code that awaits; otherwise whether `until()` holds at the end. */
  #goOnUntil(limit: number, until: () => boolean, observe: () => void): boolean | undefined {
    for (;;) {
      if (until()) return true;
      const next = this.#take(limit);
      if (next === undefined) {
        this.#now = Math.max(this.#now, limit);
        return until();
      }
      this.#now = Math.max(this.#now, next.time);
      this.#steps += 1;
      const { act } = next;
      next.act = undefined;
      act?.();
      if (next.wakes) {
        this.#isWoken = true;
        return undefined;
      }
      observe();
    }
  }

  /**
   * Calls back when all promise reactions that can run, have run: Node runs them between one immediate and the next. The
   * protocol has no other way to go on, because it sleeps on its clock alone. Many immediates are queued at once, because a
   * turn of the event loop costs ten times as much as one of them.
   */
  #drain(goOn: () => void): void {
    this.#goOn = goOn;
    if (this.#turns > 0) return;
    for (; this.#turns < TURNS; this.#turns += 1) setImmediate(this.#turn);
  }

  readonly #turn = (): void => {
    this.#turns -= 1;
    const goOn = this.#goOn;
    this.#goOn = undefined;
    goOn?.();
  };

  #add(time: number, act: () => void, wakes: boolean): () => void {
    this.#order += 1;
    const entry: Entry = { time: Math.max(time, this.#now), order: this.#order, wakes, act };
    push(this.#heap, entry);
    return () => {
      entry.act = undefined;
    };
  }

  #take(limit: number): Entry | undefined {
    for (;;) {
      const first = this.#heap[0];
      if (first === undefined || first.time > limit) return undefined;
      pop(this.#heap);
      // Cancelled ones are skipped here: taking them out of the middle would cost more.
      if (first.act !== undefined) return first;
    }
  }
}

function isBefore(one: Entry, other: Entry): boolean {
  return one.time < other.time || (one.time === other.time && one.order < other.order);
}

function push(heap: Entry[], entry: Entry): void {
  let index = heap.length;
  heap.push(entry);
  while (index > 0) {
    const above = (index - 1) >> 1;
    const parent = heap[above] as Entry;
    if (!isBefore(entry, parent)) break;
    heap[index] = parent;
    index = above;
  }
  heap[index] = entry;
}

function pop(heap: Entry[]): void {
  const last = heap.pop();
  if (last === undefined || heap.length === 0) return;
  let index = 0;
  for (;;) {
    let below = 2 * index + 1;
    if (below >= heap.length) break;
    const right = below + 1;
    if (right < heap.length && isBefore(heap[right] as Entry, heap[below] as Entry)) below = right;
    const child = heap[below] as Entry;
    if (!isBefore(child, last)) break;
    heap[index] = child;
    index = below;
  }
  heap[index] = last;
}
