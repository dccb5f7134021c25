import { Logger, type OnApplicationShutdown, type OnModuleDestroy } from "@nestjs/common";
import { LockConfigError } from "../errors.js";
import type { LockTable } from "../index.js";
import { closeOptions } from "../options/calls.js";

/**
 * The locks of one table in one application. Nest gives it to each instance that has a decorated method, and calls it when the
 * application shuts down.
 */
export class AppLocks implements OnModuleDestroy, OnApplicationShutdown {
  readonly table: LockTable;
  readonly #drainMs: number | undefined;
  /** The class whose ticks have a name that was made of the names of the class and its method. */
  readonly #classes = new Map<string, unknown>();
  #isStopping = false;

  /** @throws `LockConfigError` */
  constructor(table: LockTable, drainMs: number | undefined) {
    closeOptions({ drainMs });
    this.table = table;
    this.#drainMs = drainMs;
  }

  /** Whether the application has begun to shut down: it takes no tick any more, and leaves them to other hosts. */
  get isStopping(): boolean {
    return this.#isStopping;
  }

  /**
   * Nest has made an instance whose ticks have a name of its class.
   *
   * @throws `LockConfigError` if another class has this name: each would use up the ticks of the other.
   */
  claimTicks(instance: object, method: string): void {
    const { constructor: made } = instance;
    const name = tickNameOf(instance, method);
    const first = this.#classes.get(name) ?? made;
    this.#classes.set(name, first);
    if (first === made && made.name !== "") return;
    throw new LockConfigError("name", name, "is not the name of one class alone: give @OncePer() a name of its own");
  }

  /** No tick may begin once a `beforeApplicationShutdown()` runs. That of this module may run last, but this hook runs before all of them. */
  onModuleDestroy(): void {
    this.#isStopping = true;
  }

  /** Runs last: until then requests are served, which may need locks. */
  async onApplicationShutdown(): Promise<void> {
    try {
      await this.table.close({ drainMs: this.#drainMs });
    } catch (error) {
      // The hooks of other modules must run. Each caller whose lock was revoked gets the error as well.
      new Logger("LockModule").error(error);
    }
  }
}

/** The name of the ticks of a method whose decorator has none. */
export function tickNameOf({ constructor: { name } }: object, method: string): string {
  return `${name}.${method}`;
}
