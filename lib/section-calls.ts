import type { InspectOptions } from "node:util";
import { LockConfigError } from "./errors.js";
import type { HeldLock } from "./holding/handle.js";
import type { Resource, SectionRequest } from "./kinds/kind.js";
import { copyOf } from "./lock-info.js";
import type { LockableJson, TryRun } from "./lockable.js";
import { type LockOptions, lockOptions, type TryLockOptions, type TryRunOptions } from "./options/calls.js";
import { NONE } from "./options/check.js";
import type { OptionsCheck } from "./options/options-check.js";
import { type Address, kindOf } from "./protocol/addresses.js";
import type { Sections } from "./queues/sections.js";
import { SHOWN, shownAs } from "./shown.js";
import { Call } from "./taking/call.js";
import type { Refusal } from "./taking/claim.js";
import { type Once, periods, ticksOf } from "./taking/known-time.js";

/** In what the calls differ from kind to kind: how their options are checked, and what they say of the lock. */
interface CallRules {
  /** Of `lock()` and `run()`. */
  readonly checkLock?: OptionsCheck<LockOptions>;
  readonly checkTry: OptionsCheck<TryLockOptions>;
  /** Of `tryRun()`, if it takes other options than `tryLock()`. */
  readonly checkTryRun?: OptionsCheck<TryRunOptions>;
  /** What one call asks for, if that depends on its options. */
  readonly resourceFor?: (options: TryRunOptions) => Resource;
}

/** The four calls that lock something, for every kind of lock. */
export class SectionCalls<Held> {
  readonly #sections: Sections;
  readonly #resource: Resource;
  readonly #how: CallRules;

  constructor(sections: Sections, resource: Resource, how: CallRules) {
    this.#sections = sections;
    this.#resource = resource;
    this.#how = how;
  }

  async lock(options: LockOptions = NONE): Promise<Held> {
    return as<Held>(await this.#lock(options));
  }

  async tryLock(options: TryLockOptions = NONE): Promise<Held | null> {
    const tried = await this.#try(this.#how.checkTry(options));
    return tried.kind === "granted" ? as<Held>(tried.lock) : null;
  }

  async run<T>(fn: (lock: Held) => T | Promise<T>, options: LockOptions = NONE): Promise<T> {
    checkFunction("fn", fn);
    const lock = await this.#lock(options);
    return await runUnder(lock, fn, options.signal);
  }

  /** Runs a candidate of an election: its wait may last as long as the leader leads, and is not told as long. */
  async campaign<T>(fn: (lock: Held) => T | Promise<T>, options: LockOptions): Promise<T> {
    return await runUnder(await this.#lock(options, { isCandidate: true }), fn, options.signal);
  }

  async tryRun<T>(fn: (lock: Held) => T | Promise<T>, options: TryRunOptions = NONE): Promise<TryRun<T>> {
    checkFunction("fn", fn);
    const tried = await this.#try((this.#how.checkTryRun ?? this.#how.checkTry)(options));
    if (tried.kind !== "granted") return { ran: false, reason: tried.kind, holder: tried.call.holder };
    return { ran: true, value: await runUnder(tried.lock, fn, options.signal) };
  }

  toJSON(): LockableJson {
    const { session } = this.#sections;
    const { name, kind } = this.#resource;
    const isOurs = ({ name: of, sort }: Address): boolean => of === name && kindOf(sort) !== "place";
    const held = [...session.leases].filter((lease) => isOurs(lease.row.at) && lease.held);
    const infos = held.map(({ info }) => info).filter((info) => info.kind === kind.id);
    const [first] = infos.toSorted((one, other) => Number(one.expires) - Number(other.expires));
    return { name, held: infos.length > 0, ...(first && { owner: first.owner, expires: first.expires }) };
  }

  /** @internal */
  [SHOWN](_depth: number, options: InspectOptions): string {
    return shownAs("Lockable", this.toJSON(), options);
  }

  async #lock(
    options: LockOptions,
    { isCandidate = false }: { readonly isCandidate?: boolean } = {},
  ): Promise<HeldLock> {
    const { name, settings } = this.#resource;
    const { signal, waitMs = settings.waitMs } = (this.#how.checkLock ?? lockOptions)(options);
    signal?.throwIfAborted();
    if (waitMs === 0) {
      const tried = await this.#try(options, { waitMs });
      if (tried.kind !== "granted") throw tried.call.refusal();
      return tried.lock;
    }
    const request = this.#requestOf(options);
    const bounds = { signal, waitMs, isPatient: true, asksFor: 1, isCandidate };
    const call = new Call<HeldLock>(this.#sections.session, name, bounds);
    return await call.begin(() => this.#sections.add({ request, call, settle: (lock) => call.settle(lock) }));
  }

  /** Takes the lock if it is free. Requests without an answer are retried. */
  async #try(options: TryRunOptions, { waitMs }: { readonly waitMs?: 0 } = {}): Promise<TryAnswer> {
    const { signal } = options;
    signal?.throwIfAborted();
    const request = this.#requestOf(options);
    const { session } = this.#sections;
    const call = new Call<TryAnswer>(session, this.#resource.name, { signal, waitMs, asksFor: 1 });
    const settle = (lock: HeldLock): boolean => call.settle({ kind: "granted", lock });
    const refused = (why: Refusal): void => {
      call.missed(why);
      call.settle({ kind: why, call });
    };
    return await call.begin(() => this.#sections.try({ request, call, settle }, refused));
  }

  /** Checks what can be checked before a request, and copies the data, which may be sent much later. */
  #requestOf(options: TryRunOptions): SectionRequest {
    const { data, holdAtLeastMs = 0 } = options;
    const { session } = this.#sections;
    session.assertOpen(this.#resource.name);
    const resource = this.#how.resourceFor?.(options) ?? this.#resource;
    session.store.admit(data, resource.weight);
    const { perMs } = resource.settings;
    // One ms more: who watches a row takes it at the end of that time, and two hand-outs are further apart than the period.
    const hold = Math.max(holdAtLeastMs, perMs === 0 ? 0 : perMs + 1);
    return { resource, data: data && copyOf(data), holdAtLeastMs: hold, once: tickOf(options) };
  }
}

type TryAnswer =
  | { readonly kind: "granted"; readonly lock: HeldLock }
  | { readonly kind: Refusal; readonly call: Call<TryAnswer> };

/** How early a timer may fire, by default: more than timers and clocks that are synchronised are off. */
const EARLY_MS = 5_000;

function tickOf({ once, everyMs, earlyMs, untilSuccess }: TryRunOptions): Once | undefined {
  const limited = typeof untilSuccess === "object" ? untilSuccess.maxAttempts : undefined;
  const maxAttempts = untilSuccess === true ? Number.POSITIVE_INFINITY : limited;
  const common = { maxAttempts, inVain: { doubtfulTicks: new Map(), refused: new Set<string>() } };
  if (everyMs !== undefined) {
    const early = earlyMs ?? Math.min(EARLY_MS, Math.floor(everyMs / 10));
    return { kind: "named", tickAt: periods(everyMs), earlyMs: early, ...common };
  }
  if (typeof once === "function") {
    return { kind: "named", tickAt: ticksOf(once), earlyMs: earlyMs ?? EARLY_MS, ...common };
  }
  // Adding 0 turns -0 into 0: a row cannot store -0.
  return once === undefined ? undefined : { kind: "tick", tick: Number(once) + 0, ...common };
}

/** Types a lock as its kind declares it. */
const as = <Held>(lock: HeldLock): Held => lock as unknown as Held;

/** Runs a section, records its success, and releases its lock. If one of them fails, the first error is thrown. */
export async function runUnder<Held, T>(
  lock: HeldLock,
  fn: (lock: Held) => T | Promise<T>,
  signal?: AbortSignal,
): Promise<T> {
  const stopFollowing = lock.follow(signal);
  let value: T;
  try {
    value = await lock.runs(() => fn(as<Held>(lock)));
    await lock.recordSuccess();
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
