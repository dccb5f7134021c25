import type { MemoryTable } from "../../../lib/testing/memory-table.js";
import type { Coverage } from "./coverage.js";
import type { Scheduler } from "./scheduler.js";

/** A world, as those see it who watch it. */
export interface Scene {
  readonly scheduler: Scheduler;
  readonly table: MemoryTable;
  readonly coverage: Coverage;
  /** The table's clock at 0 of virtual time. */
  readonly epoch: number;
}

/** Somebody who watches a world. */
export abstract class Watcher {
  protected readonly scene: Scene;

  constructor(scene: Scene) {
    this.scene = scene;
  }

  /** On virtual time. */
  protected get now(): number {
    return this.scene.scheduler.now;
  }

  /** On the table's clock, in epoch ms. */
  protected get tableTime(): number {
    return this.scene.epoch + this.now;
  }

  protected count(what: string): void {
    this.scene.coverage.count(what);
  }
}

/** What a map has for a key: made where there is none yet. */
export function entryOf<Key, Value>(
  map: { get(key: Key): Value | undefined; set(key: Key, value: Value): unknown },
  key: Key,
  make: () => Value,
): Value {
  const known = map.get(key);
  if (known !== undefined) return known;
  const made = make();
  map.set(key, made);
  return made;
}
