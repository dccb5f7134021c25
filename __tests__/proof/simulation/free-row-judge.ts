import { LOCK_SORT } from "../../../lib/protocol/addresses.js";
import type { Row } from "../../../lib/protocol/row.js";
import type { Message } from "../../support/message.js";
import type { Process } from "./machine.js";
import { addressesOf } from "./message.js";
import type { Change } from "./network.js";
import { entryOf, Watcher } from "./watcher.js";

/** For how long a process that was at a row may not be done with it: a call waits for it, releases it, or lets others in. */
const BUSY_MS = 10_000;

/** A try under way. */
interface Try {
  readonly process: Process;
  readonly name: string;
  readonly since: number;
  isAlone: boolean;
}

/** Sees to it that no try of a mutex is told `held` of a row that was free from its beginning to its end. */
export class FreeRowJudge extends Watcher {
  /** Since when each row is free; undefined while it is taken. One that is not here was never there. */
  readonly #freeSince = new Map<string, number | undefined>();
  /** When each process last asked for a lock or sent anything about its row, by name. */
  readonly #sentAt = new Map<Process, Map<string, number>>();
  readonly #tries = new Set<Try>();

  sent(process: Process, message: Message): void {
    for (const name of namesOf(message)) this.asks(process, name);
  }

  /** A call of a process begins: a try behind it is told that the lock is held, because that call takes it. */
  asks(process: Process, name: string): void {
    entryOf(this.#sentAt, process, () => new Map<string, number>()).set(name, this.now);
  }

  arrived({ at, after, hasChanged }: Change): void {
    if (at.sort !== LOCK_SORT || !hasChanged) return;
    const since = isFree(after) ? (this.#freeSince.get(at.name) ?? this.now) : undefined;
    this.#freeSince.set(at.name, since);
  }

  /** A try begins. The answer is called if it was told that the lock is held, and says what is wrong with that. */
  begins(process: Process, name: string): { held(): string | undefined; ended(): void } {
    const busyUntil = (this.#sentAt.get(process)?.get(name) ?? Number.NEGATIVE_INFINITY) + BUSY_MS;
    const others = [...this.#tries].filter((other) => other.process === process && other.name === name);
    const own: Try = { process, name, since: this.now, isAlone: others.length === 0 && this.now > busyUntil };
    for (const other of others) other.isAlone = false;
    this.#tries.add(own);
    return {
      held: () => {
        if (!own.isAlone) return undefined;
        this.count("tries told held, of a process that had not asked for the lock");
        const since = this.#freeSince.has(name) ? this.#freeSince.get(name) : 0;
        return since !== undefined && since < own.since
          ? `${name} is free since ${since}, and held at ${this.now}`
          : undefined;
      },
      ended: () => void this.#tries.delete(own),
    };
  }
}

const isFree = (row: Row | undefined): boolean => row === undefined || (row.uuid === undefined && row.expires === 0);

/** The names that a message is about. */
function namesOf(message: Message): readonly string[] {
  return message.kind === "query" ? [message.query.name] : addressesOf(message).map(({ name }) => name);
}
