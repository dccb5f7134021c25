/// <reference lib="esnext.disposable" preserve="true" />

import type { InspectOptions as ShownOptions } from "node:util";
import type { Resource } from "./kinds/kind.js";
import type { Lock } from "./lock.js";
import type { SharedMutexState } from "./lock-info.js";
import type { Lockable, LockableJson } from "./lockable.js";
import { forceUnlock, forceUnlockIn } from "./operations/force-unlock.js";
import { inspectSharedMutex } from "./operations/inspect.js";
import { type ForceUnlockOptions, type InspectOptions, tryOptions } from "./options/calls.js";
import { NONE } from "./options/check.js";
import type { MutexSettings } from "./options/mutex.js";
import { READERS, writerAt } from "./protocol/addresses.js";
import type { Sections } from "./queues/sections.js";
import { SectionCalls } from "./section-calls.js";
import type { Session } from "./session/session.js";
import { SHOWN, shownAs } from "./shown.js";

/**
 * A named shared mutex: many hold its shared side at once, or one its exclusive side. Making one sends nothing. Both sides are
 * {@link Lockable}. A mutex of the same name has nothing to do with it.
 *
 * Who holds the shared side and asks for the exclusive one waits for itself: release the one first, and read again what you
 * have read under it.
 *
 * @example
 * const catalogue = locks.sharedMutex("catalogue");
 * await catalogue.shared.run(async (lock) => await readAll(lock.signal));
 * await catalogue.exclusive.run(async (lock) => await rebuild(lock.signal));
 */
export class SharedMutex {
  readonly name: string;
  /** For those who may run beside one another: readers. */
  readonly shared: Lockable;
  /** For those who run alone: writers. One that waits lets no further readers in. */
  readonly exclusive: Lockable;
  readonly #session: Session;
  readonly #resource: Resource;
  readonly #shared: SectionCalls<Lock>;
  readonly #exclusive: SectionCalls<Lock>;

  /** @internal Made by `LockTable.sharedMutex()`. */
  constructor(sections: Sections, name: string, settings: MutexSettings) {
    const { exclusive, shared } = sections.kinds;
    this.name = name;
    this.#session = sections.session;
    this.#resource = { name, kind: exclusive, at: writerAt(name), settings, permits: 1, weight: 1 };
    const readers = { ...this.#resource, kind: shared, permits: Number.POSITIVE_INFINITY };
    this.#shared = new SectionCalls<Lock>(sections, readers, { checkTry: tryOptions });
    this.#exclusive = new SectionCalls<Lock>(sections, this.#resource, { checkTry: tryOptions });
    this.shared = this.#shared;
    this.exclusive = this.#exclusive;
  }

  /**
   * Reads who holds either side, by consistent reads. For a fair one, a query reads the waiters.
   *
   * A holder that has died is returned until another needs its row, with an `expires` in the past.
   *
   * @throws {@link LockStoreError} if the table cannot be used, or does not answer within 10 s.
   * @throws the reason of `options.signal`.
   *
   * @example
   * const { exclusive, shared } = await catalogue.inspect();
   * console.log(exclusive === null ? `${shared.length} processes read` : `${exclusive.owner} writes, or waits to`);
   */
  async inspect(options: InspectOptions = NONE): Promise<SharedMutexState> {
    return await inspectSharedMutex(this.#session, this.#resource, options);
  }

  /**
   * Ends the acquisition with this uuid, if it still holds either side, as {@link Mutex.forceUnlock} does with a mutex. The
   * uuid of the shared side is that of all sections of its process that share a row: it ends all of them.
   *
   * @param uuid as returned by `inspect()` or `list()`.
   * @returns whether that acquisition held the lock until now.
   * @throws {@link LockStoreError} if the table cannot be used, or does not answer within 10 s. It may have been unlocked
   * all the same.
   * @throws the reason of `options.signal`: it may have been unlocked as well.
   * @throws {@link LockConfigError} if an argument cannot work.
   *
   * @example
   * const { exclusive } = await catalogue.inspect();
   * if (exclusive?.uuid !== undefined) await catalogue.forceUnlock(exclusive.uuid);
   */
  async forceUnlock(uuid: string, options: ForceUnlockOptions = NONE): Promise<boolean> {
    // Readers first: they are looked up, while a lost reply may make it look as if the writer's row had had this uuid.
    if (await forceUnlockIn(this.#session, this.name, READERS, uuid, options)) return true;
    return await forceUnlock(this.#session, this.#resource.at, uuid, options);
  }

  /** What `JSON.stringify()` writes, and what `console.log()` shows: which of its sides this process holds. */
  toJSON(): { readonly name: string; readonly shared: LockableJson; readonly exclusive: LockableJson } {
    return { name: this.name, shared: this.#shared.toJSON(), exclusive: this.#exclusive.toJSON() };
  }

  /** @internal */
  [SHOWN](_depth: number, options: ShownOptions): string {
    return shownAs("SharedMutex", this.toJSON(), options);
  }
}
