import { type LockSet, lockAll } from "../../lib/lock-set.js";
import { Mutex } from "../../lib/mutex.js";
import { type MutexOptions, mutexSettings } from "../../lib/options/mutex.js";
import { lockAt } from "../../lib/protocol/addresses.js";
import type { Row } from "../../lib/protocol/row.js";
import { Sections } from "../../lib/queues/sections.js";
import { Session } from "../../lib/session/session.js";
import { aborted, MemoryTable, MessageStore } from "../simulation/memory-store.js";
import type { Answer, Message } from "../simulation/message.js";
import type { ManualTime } from "./manual-time.js";

/**
 * What becomes of a request: it is answered at once, or after something else; it is lost; it is applied and its reply is
 * lost. Nobody hears of one that is lost, until its sender gives it up.
 */
export type Fate = "answered" | "lost" | "reply lost" | Promise<unknown>;

/** A process on a table in memory, with a network that does what a test says. */
export class MemoryHost {
  readonly table: MemoryTable;
  readonly session: Session;
  readonly sent: Message[] = [];
  fate: (message: Message) => Fate = () => "answered";
  /** How often its client was closed. */
  closed = 0;
  readonly #sections: Sections;

  constructor(time: ManualTime, { owner = "host", table = new MemoryTable() } = {}) {
    this.table = table;
    const store = new HostStore(
      table,
      (message, signal) => this.#send(message, signal),
      () => {
        this.closed += 1;
      },
    );
    this.session = new Session({ store, clock: time.clock(), owner, random: () => 0.5 });
    this.#sections = new Sections(this.session);
  }

  mutex(name: string, options: MutexOptions = {}): Mutex {
    return new Mutex(this.#sections, name, mutexSettings(options));
  }

  lockAll(names: readonly string[], options: MutexOptions = {}): Promise<LockSet> {
    return lockAll(this.session, names, mutexSettings(options), {});
  }

  row(name: string): Row | undefined {
    return this.table.row(lockAt(name));
  }

  async #send(message: Message, signal: AbortSignal): Promise<Answer> {
    this.sent.push(message);
    const fate = this.fate(message);
    if (fate === "reply lost") this.table.answer(message);
    const givenUp = new Promise<never>((_, reject) => {
      signal.addEventListener("abort", () => reject(aborted(signal)), { once: true });
    });
    if (fate === "lost" || fate === "reply lost") return await givenUp;
    if (fate === "answered") return this.table.answer(message);
    // It arrives, whether its sender still waits for it or not.
    const answer = fate.then(() => this.table.answer(message));
    return await Promise.race([answer, givenUp]);
  }
}

export const isTake = (message: Message): boolean => message.kind === "write" && message.write.kind === "take";
export const isRelease = (message: Message): boolean => message.kind === "write" && message.write.kind === "vacate";

class HostStore extends MessageStore {
  readonly #send: (message: Message, signal: AbortSignal) => Promise<Answer>;
  readonly #onClose: () => void;

  constructor(
    table: MemoryTable,
    send: (message: Message, signal: AbortSignal) => Promise<Answer>,
    onClose: () => void,
  ) {
    super(table);
    this.#send = send;
    this.#onClose = onClose;
  }

  protected override send(message: Message, signal: AbortSignal): Promise<Answer> {
    return this.#send(message, signal);
  }

  override close(): void {
    this.#onClose();
  }
}
