import { LockConfigError } from "./errors.js";
import type { HeldLock } from "./holding/handle.js";
import type { Resource } from "./kinds/kind.js";
import { copyOf, type LockData } from "./lock-info.js";
import type { TryRun } from "./lockable.js";
import { type LockOptions, lockOptions, type TryLockOptions, type TryOptions } from "./options/calls.js";
import { NONE } from "./options/check.js";
import type { OptionsCheck } from "./options/options-check.js";
import type { SectionRequest } from "./queues/call.js";
import type { Sections } from "./queues/sections.js";
import type { Session } from "./session/session.js";
import type { Once } from "./taking/known-time.js";
import { Wait } from "./taking/wait.js";

/** The four ways to lock something, for whatever kind it is of. */
export class SectionCalls<Held> {
  readonly session: Session;
  readonly #sections: Sections;
  readonly #resource: Resource;
  readonly #checkTry: OptionsCheck<TryLockOptions>;

  /** @param checkTry checks the options of `tryLock()` and `tryRun()`, which differ from kind to kind. */
  constructor(sections: Sections, resource: Resource, checkTry: OptionsCheck<TryLockOptions>) {
    this.session = sections.session;
    this.#sections = sections;
    this.#resource = resource;
    this.#checkTry = checkTry;
  }

  async lock(options: LockOptions = NONE): Promise<Held> {
    return as<Held>(await this.#lock(options));
  }

  async tryLock(options: TryLockOptions = NONE): Promise<Held | null> {
    this.#checkTry(options);
    const result = await this.#try(options, this.#begin(options));
    return result.kind === "granted" ? as<Held>(result.lock) : null;
  }

  async run<T>(fn: (lock: Held) => T | Promise<T>, options: LockOptions = NONE): Promise<T> {
    checkFunction("fn", fn);
    const lock = await this.#lock(options);
    return await runUnder(lock, fn, options.signal);
  }

  async tryRun<T>(fn: (lock: Held) => T | Promise<T>, options: TryLockOptions = NONE): Promise<TryRun<T>> {
    checkFunction("fn", fn);
    this.#checkTry(options);
    const result = await this.#try(options, this.#begin(options));
    if (result.kind !== "granted") return { ran: false, because: result.kind, row: result.wait.holder };
    return { ran: true, value: await runUnder(result.lock, fn) };
  }

  async #lock(options: LockOptions): Promise<HeldLock> {
    const { signal, holdAtLeastMs = 0 } = options === NONE ? options : lockOptions(options);
    const { name, settings } = this.#resource;
    const waitMs = options.waitMs ?? settings.waitMs;
    signal?.throwIfAborted();
    const data = this.#begin(options);
    if (waitMs === 0) {
      const result = await this.#try({ holdAtLeastMs }, data, signal);
      if (result.kind !== "granted") throw result.wait.timeout();
      return result.lock;
    }
    const wait = new Wait(this.session, name, { patient: true, asksFor: 1 });
    const request = { resource: this.#resource, data, holdAtLeastMs };
    return await wait.run<HeldLock>((deliver) => this.#sections.serve(request, wait, deliver), { signal, waitMs });
  }

  /** Checks what can be checked before a request. @returns a copy of the data, which may be sent much later. */
  #begin({ data }: TryOptions): LockData | undefined {
    this.session.assertOpen();
    this.session.store.admit(data);
    return data && copyOf(data);
  }

  /** Takes the lock if it is free. Requests without an answer are retried. */
  async #try(options: TryLockOptions, data: LockData | undefined, signal?: AbortSignal): Promise<Tried> {
    const { holdAtLeastMs = 0 } = options;
    const wait = new Wait(this.session, this.#resource.name, { patient: false, asksFor: 1 });
    const request: SectionRequest = { resource: this.#resource, data, holdAtLeastMs, once: onceOf(options) };
    return await wait.run<Tried>(
      async (deliver) => {
        const answer = await this.#sections.tryServe(request, wait, (lock) => deliver({ kind: "granted", lock }));
        if (answer === "delivered") return;
        wait.missed(answer);
        deliver({ kind: answer, wait });
      },
      { signal, waitMs: Number.POSITIVE_INFINITY },
    );
  }
}

type Tried =
  | { readonly kind: "granted"; readonly lock: HeldLock }
  | { readonly kind: "held" | "done"; readonly wait: Wait };

function onceOf({ once, everyMs }: TryLockOptions): Once | undefined {
  if (everyMs !== undefined) return { kind: "period", everyMs };
  // Adding 0 turns -0 into 0: a row cannot store -0.
  return once === undefined ? undefined : { kind: "tick", tick: Number(once) + 0 };
}

/** The type of lock that is declared for what is locked. */
const as = <Held>(lock: HeldLock): Held => lock as unknown as Held;

/** Runs a section and releases its lock. If both fail, the section's error is thrown. */
export async function runUnder<Held, T>(
  lock: HeldLock,
  fn: (lock: Held) => T | Promise<T>,
  signal?: AbortSignal,
): Promise<T> {
  const stopFollowing = lock.follow(signal);
  let value: T;
  try {
    value = await fn(as<Held>(lock));
  } catch (error) {
    await lock.unlock().catch(() => undefined);
    throw error;
  } finally {
    stopFollowing();
  }
  await lock.unlock();
  return value;
}

/** @throws {@link LockConfigError} for what is no function, under the name that the caller gave it. */
export function checkFunction(name: string, fn: unknown): void {
  if (typeof fn !== "function") throw new LockConfigError(name, fn, "must be the function to run under the lock");
}
