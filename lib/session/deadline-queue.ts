/** What waits in a {@link DeadlineQueue}. */
export interface Queued {
  readonly deadline: number;
  /** Decides between equal deadlines: the lower one arrived first. */
  readonly order: number;
  /** Where the queue keeps it: set by the queue. */
  position: number;
}

/** A binary heap: the earliest deadline comes first, and any entry can be removed, both in O(log n). */
export class DeadlineQueue<Entry extends Queued> {
  readonly #heap: Entry[] = [];

  get size(): number {
    return this.#heap.length;
  }

  /** The entry with the earliest deadline. */
  get first(): Entry | undefined {
    return this.#heap[0];
  }

  add(entry: Entry): void {
    this.#heap.push(entry);
    this.#moveUp(entry, this.#heap.length - 1);
  }

  /** The entry must be in the queue. */
  remove(entry: Entry): void {
    const last = this.#heap.pop();
    if (last === undefined || last === entry) return;
    const { position } = entry;
    if (precedes(last, entry)) this.#moveUp(last, position);
    else this.#moveDown(last, position);
  }

  #moveUp(entry: Entry, from: number): void {
    let position = from;
    while (position > 0) {
      const parentAt = (position - 1) >>> 1;
      const parent = this.#heap[parentAt];
      if (parent === undefined || !precedes(entry, parent)) break;
      this.#put(parent, position);
      position = parentAt;
    }
    this.#put(entry, position);
  }

  #moveDown(entry: Entry, from: number): void {
    let position = from;
    for (;;) {
      const childAt = this.#earlierChild(position);
      const child = this.#heap[childAt];
      if (child === undefined || !precedes(child, entry)) break;
      this.#put(child, position);
      position = childAt;
    }
    this.#put(entry, position);
  }

  #earlierChild(position: number): number {
    const leftAt = 2 * position + 1;
    const left = this.#heap[leftAt];
    const right = this.#heap[leftAt + 1];
    return left !== undefined && right !== undefined && precedes(right, left) ? leftAt + 1 : leftAt;
  }

  #put(entry: Entry, position: number): void {
    this.#heap[position] = entry;
    entry.position = position;
  }
}

export function precedes(one: Queued, other: Queued): boolean {
  return one.deadline < other.deadline || (one.deadline === other.deadline && one.order < other.order);
}
