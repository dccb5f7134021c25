import { Logger, type OnApplicationShutdown, type OnModuleDestroy, type OnModuleInit } from "@nestjs/common";
import { LockStoreError } from "../errors.js";
import type { LockTable } from "../index.js";
import { closeOptions } from "../options/calls.js";

/** How the module of an application treats its table, as options say. */
export interface AppSettings {
  readonly drainMs: number | undefined;
  readonly checkAtStart: boolean;
}

/**
 * The locks of one table in one application. Nest gives it to each instance that has a decorated method, and calls it when the
 * application starts and shuts down.
 */
export class AppLocks implements OnModuleInit, OnModuleDestroy, OnApplicationShutdown {
  readonly table: LockTable;
  readonly #settings: AppSettings;
  #isStopping = false;

  /** @throws `LockConfigError` */
  constructor(table: LockTable, settings: AppSettings) {
    closeOptions({ drainMs: settings.drainMs });
    this.table = table;
    this.#settings = settings;
  }

  /** @throws `LockStoreError` if the table is to be checked, and locks do not work on it: the application does not start. */
  async onModuleInit(): Promise<void> {
    if (!this.#settings.checkAtStart) return;
    const { usable, problems } = await this.table.check();
    const messages = problems.map(({ message }) => message);
    if (!usable) throw new LockStoreError(messages.join("; "));
    for (const message of messages) new Logger("LockModule").warn(message);
  }

  /** Whether the application has begun to shut down: it takes no tick any more, and leaves them to other hosts. */
  get isStopping(): boolean {
    return this.#isStopping;
  }

  /** No tick may begin once a `beforeApplicationShutdown()` runs. That of this module may run last, but this hook runs before all of them. */
  onModuleDestroy(): void {
    this.#isStopping = true;
  }

  /** Runs last: until then requests are served, which may need locks. */
  async onApplicationShutdown(): Promise<void> {
    try {
      await this.table.close({ drainMs: this.#settings.drainMs });
    } catch (error) {
      // The hooks of other modules must run. Each caller whose lock was revoked gets the error as well.
      new Logger("LockModule").error(error);
    }
  }
}
