import type { Row } from "../../lib/store.js";
import type { Process } from "./machine.js";
import type { Operation } from "./memory-store.js";
import type { Scheduler } from "./scheduler.js";

/** How long a process may do nothing about its own row: a request that hangs, a pause, and a look. */
const IDLE_MS = 4_000;

/** For how long after it was sent a claim is looked for. */
const LOOKED_FOR_MS = 9_000;

interface Phantom {
  readonly name: string;
  readonly process: Process;
  readonly expires: number;
  since: number;
}

/**
 * Claims that have arrived although no section holds them: put there by a call that has ended, or will hear of it. Their
 * process has to do something about them, or everybody else waits for nobody.
 */
export class Phantoms {
  readonly #scheduler: Scheduler;
  /** Who sent a claim, and when first. */
  readonly #claims = new Map<string, { readonly process: Process; readonly at: number }>();
  readonly #rows = new Map<string, Phantom>();

  constructor(scheduler: Scheduler) {
    this.#scheduler = scheduler;
  }

  sent(process: Process, operation: Operation): void {
    const { now } = this.#scheduler;
    if (operation.kind === "take") {
      const { uuid } = operation.claim;
      if (!this.#claims.has(uuid)) this.#claims.set(uuid, { process, at: now });
      const phantom = this.#rows.get(uuid);
      if (phantom !== undefined) phantom.since = now;
    } else if (operation.kind === "read") {
      // Whoever looks, looks for what it has to take back.
      for (const [uuid, phantom] of this.#rows) {
        if (operation.consistent && phantom.process === process && phantom.name === operation.name)
          this.#rows.delete(uuid);
      }
    } else if (operation.kind === "restamp") {
      this.#settle(operation.from.uuid);
    } else if ("uuid" in operation) {
      this.#settle(operation.uuid);
    }
  }

  arrived(operation: Operation, before: Row | undefined, after: Row | undefined, duplicate: boolean): void {
    if (before?.uuid !== undefined && before.uuid !== after?.uuid) this.#rows.delete(before.uuid);
    if (operation.kind !== "take" || duplicate || after?.uuid !== operation.claim.uuid) return;
    const { now } = this.#scheduler;
    const claim = this.#claims.get(operation.claim.uuid);
    if (claim === undefined || now > claim.at + LOOKED_FOR_MS) return;
    this.#rows.set(operation.claim.uuid, {
      name: operation.name,
      process: claim.process,
      expires: after.expires,
      since: now,
    });
  }

  took(uuid: string): void {
    this.#settle(uuid);
  }

  /** Its clock was set: a process may think that it has looked for long enough. */
  confused(process: Process): void {
    for (const [uuid, claim] of this.#claims) if (claim.process === process) this.#settle(uuid);
  }

  /** Its process knows that it has arrived. A copy that arrives after its end is nobody's, and ends at its stamp. */
  #settle(uuid: string): void {
    this.#rows.delete(uuid);
    this.#claims.delete(uuid);
  }

  /** One about which nothing has been done for too long. One that is over stands in nobody's way. */
  oldest(tableTime: number): string | undefined {
    const { now } = this.#scheduler;
    for (const [uuid, phantom] of this.#rows) {
      if (phantom.process.crashed || phantom.expires < tableTime) this.#rows.delete(uuid);
      else if (phantom.process.asleep) phantom.since = now;
      else if (now - phantom.since > IDLE_MS) return uuid;
    }
    return undefined;
  }
}
