import { CHANNELS, publish } from "../diagnostics.js";
import type { LockLostError } from "../errors.js";
import type { Lock } from "../lock.js";
import type { Session } from "../session/session.js";
import type { Lease } from "./lease.js";

/**
 * What the channels tell of one section: that it has the lock, that others want the lock, that the lock is lost, and that the
 * section has ended. A caller that gave up before it got its lock has no section, so nothing is told of it.
 */
export class SectionEvents {
  readonly #session: Session;
  readonly #lease: Lease;
  readonly #section: Pick<Lock, "name" | "uuid" | "owner" | "held">;
  /** Whether a section of this process has passed the lease on to this one. */
  readonly #isPassedOn: boolean;
  /** When it began, and when its caller has ended it, on `atLeast`. */
  beganAt = 0;
  #endedAt = 0;
  #stage: "new" | "delivered" | "lost" | "over" = "new";
  /** The number of the call that it was delivered to. */
  #call = 0;
  /** Whether `dynamutex:wanted` was published. */
  #isWantedTold = false;
  #cancelWantedAlarm: () => void = () => undefined;

  constructor(session: Session, lease: Lease, section: Pick<Lock, "name" | "uuid" | "owner" | "held">) {
    this.#session = session;
    this.#lease = lease;
    this.#section = section;
    this.#isPassedOn = lease.renewals.haveServed;
  }

  /** The caller has the lock. */
  delivered({ call, waitedMs }: { readonly call: number; readonly waitedMs: number }): void {
    this.#stage = "delivered";
    this.#call = call;
    if (CHANNELS["dynamutex:acquired"].hasSubscribers) {
      const { name, uuid, owner } = this.#section;
      const passedOn = this.#isPassedOn;
      const takeover = passedOn ? undefined : this.#lease.row.takeover;
      publish("dynamutex:acquired", { name, uuid, owner, call, waitedMs, passedOn, takeover });
    }
    this.renewed();
  }

  /** Publishes `dynamutex:wanted`, once. If the mark that is known does not count yet, an alarm checks again when it does. */
  renewed(): void {
    this.stopWatching();
    const { turnLeftMs } = this.#lease;
    if (this.#isWantedTold || !this.#section.held || turnLeftMs === Number.POSITIVE_INFINITY) return;
    if (turnLeftMs > 0) {
      this.#cancelWantedAlarm = this.#session.clock.alarm(Math.ceil(turnLeftMs), () => this.renewed());
      return;
    }
    this.#isWantedTold = true;
    const { name, uuid, owner } = this.#section;
    publish("dynamutex:wanted", { name, uuid, owner, call: this.#call });
  }

  /** Whether others want the lock does not matter any more. */
  stopWatching(): void {
    this.#cancelWantedAlarm();
  }

  /** Publishes the loss once: a release throws again what the section was told before. */
  lost({ reason, cause }: LockLostError): void {
    if (this.#stage !== "delivered") return;
    this.#stage = "lost";
    const { name, uuid } = this.#section;
    publish("dynamutex:lost", { name, uuid, call: this.#call, reason, cause });
  }

  /** The caller has ended its section. */
  ended(): void {
    this.#endedAt = this.#session.clock.atLeast();
    this.stopWatching();
  }

  /** Publishes its end, once: after its release, or before the next section on its lease publishes its beginning. */
  tellEnd(): void {
    if (this.#stage === "new" || this.#stage === "over") return;
    this.#stage = "over";
    if (!CHANNELS["dynamutex:released"].hasSubscribers) return;
    const { name, uuid } = this.#section;
    publish("dynamutex:released", { name, uuid, call: this.#call, heldMs: this.#endedAt - this.beganAt });
  }
}
