import { LOCK_SORT, lockAt, permitAt, writerAt } from "../../lib/protocol/addresses.js";
import type { Row } from "../../lib/protocol/row.js";
import type { TableId } from "../../lib/session/session.js";
import { MemoryTable } from "../../lib/testing/memory-table.js";
import { LibraryHost } from "./library-host.js";
import { type ManualClockOptions, ManualTime } from "./manual-time.js";
import type { Answer, Message } from "./message.js";
import { aborted, answerOf, MemoryStore } from "./message-store.js";

/**
 * What becomes of a request: it is answered at once, or after something else; it is lost; it is applied and its reply is
 * lost. Nobody hears of one that is lost, until its sender gives it up.
 */
export type Fate = "answered" | "lost" | "reply lost" | Promise<unknown>;

/** A process on a table in memory, with a network that does what a test says. */
export class MemoryHost extends LibraryHost {
  readonly table: MemoryTable;
  readonly sent: Message[] = [];
  fate: (message: Message) => Fate = () => "answered";
  /** What is waited for between an answer that the table has given and its arrival; undefined for nothing. */
  hold: (message: Message) => Promise<unknown> | undefined = () => undefined;
  /** How often its client was closed. */
  closed = 0;
  #toldUpTo = 0;

  constructor(
    time: ManualTime,
    {
      owner = "host",
      table = new MemoryTable(),
      tableId = { tableName: "locks", keyPrefix: "" },
      random = () => 0.5,
      togetherFrom,
      ...how
    }: {
      readonly owner?: string;
      readonly table?: MemoryTable;
      readonly tableId?: TableId;
      readonly random?: () => number;
      /** From how many leases on it sends renewals together. */
      readonly togetherFrom?: number;
    } & ManualClockOptions = {},
  ) {
    const store = new MemoryStore(table, (message, signal) => this.#send(message, signal));
    const together = togetherFrom !== undefined && { togetherFrom };
    super({ store, clock: time.clock(how), owner, table: tableId, random, ...together });
    this.table = table;
    store.close = () => {
      this.closed += 1;
    };
  }

  row(name: string): Row | undefined {
    return this.table.row(lockAt(name));
  }

  permit(name: string, permit: number): Row | undefined {
    return this.table.row(permitAt(name, permit));
  }

  writer(name: string): Row | undefined {
    return this.table.row(writerAt(name));
  }

  readers(name: string): readonly Row[] {
    return this.table.rows.filter((row) => row.name === name && row.sort.startsWith("reader#"));
  }

  /** What it has sent since this was last asked, in words. */
  told(): readonly string[] {
    const told = this.sent.slice(this.#toldUpTo).map(inWords);
    this.#toldUpTo = this.sent.length;
    return told;
  }

  async #send(message: Message, signal: AbortSignal): Promise<Answer> {
    this.sent.push(message);
    const fate = this.fate(message);
    if (fate === "reply lost") answerOf(this.table, message);
    const givenUp = new Promise<never>((_, reject) => {
      signal.addEventListener("abort", () => reject(aborted(signal)), { once: true });
    });
    if (fate === "lost" || fate === "reply lost") return await givenUp;
    if (fate === "answered") {
      const [answer, arrives] = [answerOf(this.table, message), this.hold(message)];
      if (arrives !== undefined) await Promise.race([arrives, givenUp]);
      return answer;
    }
    // It arrives, whether its sender still waits for it or not.
    const answer = fate.then(() => answerOf(this.table, message));
    return await Promise.race([answer, givenUp]);
  }
}

/** Three processes on one table. */
export function hosts() {
  const time = new ManualTime();
  const one = new MemoryHost(time, { owner: "one" });
  const of = (owner: string): MemoryHost => new MemoryHost(time, { owner, table: one.table });
  return { time, one, other: of("other"), third: of("third") };
}

export const isTake = (message: Message): boolean => message.kind === "write" && message.write.kind === "take";
export const isRelease = (message: Message): boolean => message.kind === "write" && message.write.kind === "vacate";

/** A request in words: what it does with which row, or asks of which rows. */
export function inWords(message: Message): string {
  switch (message.kind) {
    case "write":
      return `${message.write.kind} ${sortInWords(message.write.at.sort)}`;
    case "writeAll":
      return `${message.takes[0]?.kind} ${message.takes.map(({ at }) => (at.sort === LOCK_SORT ? at.name : at.sort)).join(", ")}`;
    case "renewAll":
      return `renew ${message.renewals.map(({ at }) => at.name).join(", ")}`;
    case "transact":
      return `transact on ${sortInWords(message.writes.guard.at.sort)}`;
    case "read":
      return `${message.consistent ? "consistent read" : "read"} ${sortInWords(message.at.sort)}`;
    case "query":
      return `${message.query.consistent ? "consistent query" : "query"} ${sortInWords(message.query.first)}`;
    default:
      return message satisfies never;
  }
}

/** A reader's key has a uuid in it, a place's many digits. */
function sortInWords(sort: string): string {
  return sort.replace(/^reader#.*$/, "reader").replace(/queue#0*(\d+)$/, "queue#$1");
}
