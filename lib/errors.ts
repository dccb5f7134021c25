import type { LockInfo } from "./lock-info.js";

/** On every error of this library, and the same in every copy of it. */
const BRAND = Symbol.for("dynamutex.LockError");

/** The code of an error of this library: what to do about each is in docs/reference/errors.md. */
export type LockErrorCode =
  | "LOCK_CONFIG"
  | "LOCK_TIMEOUT"
  | "LOCK_LOST"
  | "LOCK_STORE"
  | "LOCK_RELEASED"
  | "LOCK_CLOSED"
  | "LOCK_RESIGNED";

/** The base class of all errors of this library. `code` is stable; messages may change. */
export class LockError extends Error {
  /**
   * The code of all errors of a class, or `any` for those of this one.
   *
   * @internal
   */
  static readonly code: string = "any";
  override readonly name: string = "LockError";
  readonly code: LockErrorCode;

  constructor(code: LockErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
    Object.defineProperty(this, BRAND, { value: true });
  }

  /**
   * `instanceof` accepts an error of another copy of this library as well: where a process loads both builds of the
   * package, or two versions of it, a loss is a loss whichever of them throws it.
   *
   * @internal
   */
  static override [Symbol.hasInstance](value: unknown): boolean {
    // biome-ignore lint/complexity/noThisInStatic: the class on the right of `instanceof`, which may be a derived one
    return isInstance(this, value);
  }
}

function isInstance(kind: { readonly code: string }, value: unknown): boolean {
  if (Function.prototype[Symbol.hasInstance].call(kind, value)) return true;
  if (typeof value !== "object" || value === null || !(BRAND in value)) return false;
  // A class that a user derives from one of these has no code of its own, and no other copy either.
  return Object.hasOwn(kind, "code") && (kind.code === "any" || kind.code === Reflect.get(value, "code"));
}

/** An option or an argument cannot work, and nothing was sent. Correct the value that the message names. */
export class LockConfigError extends LockError {
  /** @internal */
  static override readonly code = "LOCK_CONFIG";
  override readonly name = "LockConfigError";
  /** The option, as a path: `poll.minMs`. */
  readonly option: string;
  /** The value that was refused. */
  readonly value: unknown;

  constructor(option: string, value: unknown, remedy: string, options?: ErrorOptions) {
    super("LOCK_CONFIG", `${option}: ${remedy} (got ${show(value)})`, options);
    this.option = option;
    this.value = value;
  }
}

/**
 * The wait ended before the lock was free: somebody has it, or goes first, and the message says who. Try again later, or wait longer
 * with `waitMs`. A call that the table did not answer ends with a {@link LockStoreError} instead.
 */
export class LockTimeoutError extends LockError {
  /** @internal */
  static override readonly code = "LOCK_TIMEOUT";
  override readonly name = "LockTimeoutError";
  readonly lockName: string;
  /**
   * The lock as it was last read. Undefined where somebody goes first who has no row of it, such as in a fair queue: the message says
   * who. Never a claim that this process has made itself and given up.
   */
  readonly holder: LockInfo | undefined;
  /** How long this call waited, in ms. */
  readonly waitedMs: number;

  constructor(lockName: string, waitedMs: number, holder: LockInfo | undefined, options?: ErrorOptions);
  /** @internal */
  constructor(
    lockName: string,
    waitedMs: number,
    holder: LockInfo | undefined,
    options?: ErrorOptions & { readonly seen?: string | undefined; readonly because?: string | undefined },
  );
  constructor(
    lockName: string,
    waitedMs: number,
    holder: LockInfo | undefined,
    options: ErrorOptions & { readonly seen?: string | undefined; readonly because?: string | undefined } = {},
  ) {
    const by = holder === undefined ? "" : `; ${options.seen ?? lastSeen(holder)}`;
    const why = options.because === undefined ? "" : `. ${options.because}`;
    super("LOCK_TIMEOUT", `Lock ${show(lockName)} was not free within ${Math.round(waitedMs)} ms${by}${why}`, options);
    this.lockName = lockName;
    this.waitedMs = waitedMs;
    this.holder = holder;
  }
}

/** @internal Who is in the way of a call, as its error says it. */
export function lastSeen({ uuid, owner, expires, handedOff }: LockInfo): string {
  const until = expires.toISOString();
  if (uuid === undefined)
    return `last seen without a holder, last held by ${owner}, and kept until ${until}, which no unlock can end`;
  return `last seen ${handedOff ? "handed off" : "held"} by ${owner} until ${until}`;
}

/**
 * Why a lock was lost. `expired`: its lease ended before a renewal was confirmed. `stolen`: its row has another uuid.
 * `deleted`: its row is gone. `forced`: `forceUnlock()` was called. `max-hold`: `maxHoldMs` is over. `closed`: its
 * `LockTable` was closed, and the section had not ended when the drain was over.
 */
export type LossReason = "expired" | "stolen" | "deleted" | "forced" | "max-hold" | "closed";

/** The lock was lost before it was released. Its section may have run at the same time as another: do not trust the result. */
export class LockLostError extends LockError {
  /** @internal */
  static override readonly code = "LOCK_LOST";
  override readonly name = "LockLostError";
  readonly lockName: string;
  readonly uuid: string;
  readonly reason: LossReason;

  constructor(lockName: string, uuid: string, reason: LossReason, options?: ErrorOptions);
  /** @internal */
  constructor(
    lockName: string,
    uuid: string,
    reason: LossReason,
    options?: ErrorOptions & { readonly because?: string },
  );
  constructor(
    lockName: string,
    uuid: string,
    reason: LossReason,
    options: ErrorOptions & { readonly because?: string } = {},
  ) {
    super("LOCK_LOST", `Lock ${show(lockName)} was lost: ${options.because ?? LOSS[reason]}`, options);
    this.lockName = lockName;
    this.uuid = uuid;
    this.reason = reason;
  }
}

/** What is said of each reason. */
export const LOSS: Readonly<Record<LossReason, string>> = {
  expired: "its lease ended before a renewal got through",
  stolen: "another holder's uuid is on its row",
  deleted: "its row was deleted by somebody else",
  forced: "it was unlocked by force",
  "max-hold": "it was held for maxHoldMs",
  closed: "its LockTable was closed, and its section had not ended when the drain was over",
};

/** A request failed, or the table cannot be used. `cause` is the SDK's own error, if there is one. */
export class LockStoreError extends LockError {
  /** @internal */
  static override readonly code = "LOCK_STORE";
  override readonly name = "LockStoreError";
  /** Whether the same request may succeed later. The library retries such requests while there is time. */
  readonly transient: boolean;
  /** Whether DynamoDB has replied. False if there was no reply, or one from another server. */
  readonly answered: boolean;
  /** Whether the table throttled the request. The library then sends fewer requests at once. */
  readonly throttled: boolean;
  /**
   * Whether a copy of the request may have been applied although it failed: it left and the table has not answered it, the
   * client sent it more than once by itself, or it conflicted with a write of another Region.
   */
  readonly retried: boolean;

  constructor(
    message: string,
    options: ErrorOptions & {
      readonly transient?: boolean;
      readonly answered?: boolean;
      readonly throttled?: boolean;
      readonly retried?: boolean;
    } = {},
  ) {
    super("LOCK_STORE", message, options);
    this.transient = options.transient ?? false;
    this.answered = options.answered ?? true;
    this.throttled = options.throttled ?? false;
    this.retried = options.retried ?? false;
  }
}

/**
 * Finds the {@link LockLostError} in an error: the error itself, one of its causes, a member of an `AggregateError`, or
 * a part of the `SuppressedError` that `await using` throws if the body and the release both fail.
 *
 * @returns undefined if there is none.
 *
 * @example
 * try {
 *   await using lock = await mutex.lock();
 *   await work(lock.signal);
 * } catch (error) {
 *   const lost = findLockLost(error);
 *   if (lost === undefined) throw error;
 *   console.warn(`lost ${lost.lockName}: ${lost.reason}`);
 * }
 */
export function findLockLost(error: unknown): LockLostError | undefined {
  // The loop also visits what it adds, and nothing twice: an error may be its own cause.
  const parts = new Set([error]);
  for (const part of parts) {
    if (part instanceof LockLostError) return part;
    const { cause, error: thrown, suppressed, errors } = Object(part) as Record<string, unknown>;
    for (const inner of [thrown, suppressed, cause, ...(Array.isArray(errors) ? errors : [])]) parts.add(inner);
  }
  return undefined;
}

function show(value: unknown): string {
  if (typeof value === "string") return JSON.stringify(value.length > 80 ? `${value.slice(0, 80)}…` : value);
  if (typeof value === "bigint") return `${value}n`;
  if (typeof value === "function") return "a function";
  if (typeof value !== "object" || value === null) return String(value);
  if (isInvalidDate(value)) return "Invalid Date";
  try {
    const text = JSON.stringify(value, shown);
    return text.length > 200 ? `${text.slice(0, 200)}…` : text;
  } catch {
    return Object.prototype.toString.call(value);
  }
}

/** JSON would show as null what is wrong with the value: a number that is none, and a date that is none, whose `toJSON()` is called first. */
function shown(this: unknown, key: string, value: unknown): unknown {
  if (isInvalidDate(Object(this)[key])) return "Invalid Date";
  if (typeof value === "number" && !Number.isFinite(value)) return String(value);
  return typeof value === "bigint" ? `${value}n` : value;
}

const isInvalidDate = (value: unknown): boolean => value instanceof Date && Number.isNaN(value.getTime());
