import type { Claim } from "../../lib/store.js";
import type { Process } from "./machine.js";
import type { Operation } from "./memory-store.js";
import type { Change } from "./network.js";
import type { Scheduler } from "./scheduler.js";

/** How long a process may do nothing about its own row: a request that hangs, a pause, and the time between two looks. */
const IDLE_MS = 3_000 + 1_500 + 600;

/** For how long after it was sent a claim is looked for. */
const LOOKED_FOR_MS = 9_000;

/** One claim, or those of a set, which come and go together. */
interface Call {
  readonly process: Process;
  readonly sentAt: number;
  /** The name of its first claim, whose row tells of all. */
  readonly first: string;
  /** When its process has last done something about it. */
  heededAt: number;
}

interface Phantom {
  readonly name: string;
  readonly expires: number;
  readonly call: Call;
}

/**
 * Claims that have arrived although no section holds them: put there by a call that has ended, or will hear of it. Their
 * process has to do something about them, or everybody else waits for nobody.
 */
export class Phantoms {
  readonly #scheduler: Scheduler;
  /** By uuid, those whose process does not know yet that they have arrived. */
  readonly #calls = new Map<string, Call>();
  readonly #rows = new Map<string, Phantom>();
  /** By uuid, all there ever were. */
  readonly #all = new Map<string, Call>();

  constructor(scheduler: Scheduler) {
    this.#scheduler = scheduler;
  }

  sent(process: Process, operation: Operation): void {
    const { now } = this.#scheduler;
    const uuids = claimsOf(operation).map(({ uuid }) => uuid);
    if (uuids.length > 0) {
      const known = this.#all.get(uuids[0] as string);
      const call = known ?? { process, sentAt: now, first: operation.name, heededAt: now };
      call.heededAt = now;
      if (known !== undefined) return;
      for (const uuid of uuids) {
        this.#calls.set(uuid, call);
        this.#all.set(uuid, call);
      }
    } else if (operation.kind === "read") {
      if (operation.consistent) this.#looked(process, operation.name);
    } else if (operation.kind === "restamp") {
      this.#settle(operation.from.uuid);
    } else if ("uuid" in operation) {
      this.#settle(operation.uuid);
    }
  }

  arrived(operation: Operation, rows: readonly Change[], duplicate: boolean): void {
    const { now } = this.#scheduler;
    for (const { before, after } of rows) {
      if (before?.uuid !== undefined && before.uuid !== after?.uuid) this.#replaced(operation, before.uuid);
    }
    if (duplicate) return;
    for (const { uuid, name, expires } of claimsOf(operation)) {
      const call = this.#calls.get(uuid);
      const isThere = rows.some((row) => row.name === name && row.after?.uuid === uuid);
      if (!isThere || call === undefined || now > call.sentAt + LOOKED_FOR_MS) continue;
      call.heededAt = now;
      this.#rows.set(uuid, { name, expires, call });
    }
  }

  took(uuid: string): void {
    this.#settle(uuid);
  }

  /** Its clock was set: a process may think that it has looked for long enough. */
  confused(process: Process): void {
    for (const [uuid, call] of this.#calls) if (call.process === process) this.#settle(uuid);
  }

  /** One about which nothing has been done for too long. One that is over stands in nobody's way. */
  oldest(tableTime: number): string | undefined {
    const { now } = this.#scheduler;
    for (const [uuid, { call, expires }] of this.#rows) {
      if (call.process.crashed || expires < tableTime) this.#rows.delete(uuid);
      else if (call.process.asleep) call.heededAt = now;
      else if (now - call.heededAt > IDLE_MS) return uuid;
    }
    return undefined;
  }

  /** Whoever looks, looks for what it has to take back: the first row of a set for all of them. */
  #looked(process: Process, name: string): void {
    for (const [uuid, phantom] of this.#rows) {
      if (phantom.call.process !== process || phantom.call.first !== name) continue;
      phantom.call.heededAt = this.#scheduler.now;
      if (phantom.name === name && this.#sizeOf(phantom.call) === 1) this.#rows.delete(uuid);
    }
  }

  /** By a release of its own process, or by others: then the rest of a set may be taken for what it is by nobody. */
  #replaced(operation: Operation, uuid: string): void {
    const call = this.#rows.get(uuid)?.call;
    this.#rows.delete(uuid);
    if (call === undefined || operation.kind === "release") return;
    for (const [other, phantom] of this.#rows) if (phantom.call === call) this.#rows.delete(other);
  }

  #sizeOf(call: Call): number {
    return [...this.#calls.values()].filter((it) => it === call).length;
  }

  /**
   * Its process knows that it has arrived. A copy that arrives after its end is nobody's, and ends at its stamp. The
   * others of a set are next.
   */
  #settle(uuid: string): void {
    const call = this.#all.get(uuid);
    if (call !== undefined) call.heededAt = this.#scheduler.now;
    this.#rows.delete(uuid);
    this.#calls.delete(uuid);
  }
}

/** What an operation wants to put on rows. */
function claimsOf(operation: Operation): readonly Claim[] {
  if (operation.kind === "take") return [operation.claim];
  return operation.kind === "takeAll" ? operation.takes.map(({ claim }) => claim) : [];
}
