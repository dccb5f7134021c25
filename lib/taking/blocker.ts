import type { LockInfo } from "../lock-info.js";
import { infoOf, type Row } from "../protocol/row.js";
import type { Session } from "../session/session.js";
import type { Sightings } from "../session/sightings.js";
import { watchForStuck } from "./stuck.js";

/** Who is in the way of one call, as last seen: for its error, its channels, and the warning of a section that does not end. */
export class Blocker {
  readonly #session: Session;
  readonly #wait: { readonly call: number; readonly sightings: Sightings };
  /** Called with each row of the lock that was seen, free or not. */
  onSeen: ((row: Row) => void) | undefined;
  #row: Row | undefined;
  #localHolder: (() => LockInfo | undefined) | undefined;
  /** Ends the watch for a section that does not end. */
  #endStuckWatch: (() => void) | undefined;
  /** Whether that watch may begin: only for a call that waits, until it has ended. */
  #isWatched: boolean;

  constructor(
    session: Session,
    wait: { readonly call: number; readonly sightings: Sightings },
    { isWatched }: { readonly isWatched: boolean },
  ) {
    this.#session = session;
    this.#wait = wait;
    this.#isWatched = isWatched;
  }

  get holder(): LockInfo | undefined {
    return this.seen ?? this.#localHolder?.();
  }

  /** The holder on the row that this call itself has seen. Other calls ask for this, so that no two calls ask each other. */
  get seen(): LockInfo | undefined {
    return this.#row && infoOf(this.#row);
  }

  /** Notes the row that is in the way. A claim that this process has given up has no holder, so it is not named. */
  saw(row: Row): void {
    if (!this.#wait.sightings.isAbandoned(row)) this.#row = row;
    this.#watchForStuck();
    this.onSeen?.(row);
  }

  /** Notes that a section of this process is in the way; `holder` is called for its details when they are needed. */
  sawLocally(holder: () => LockInfo | undefined): void {
    this.#localHolder = holder;
    this.#watchForStuck();
  }

  /** The call has ended. */
  end(): void {
    this.#isWatched = false;
    this.#endStuckWatch?.();
  }

  #watchForStuck(): void {
    // A set waits for the lock that was last seen in the way.
    if (this.#isWatched) this.#endStuckWatch ??= watchForStuck(this.#session, this.#wait.call, () => this.holder?.uuid);
  }
}
