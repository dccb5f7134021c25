import { type Address, READERS, WRITER_SORT } from "../../../lib/protocol/addresses.js";
import type { Take } from "../../../lib/protocol/writes.js";
import type { Answer, Message } from "../../support/message.js";
import { isSameRow, lockKindOf } from "./locks.js";
import type { Process } from "./machine.js";
import { isForced, takesOf } from "./message.js";
import type { Change } from "./network.js";
import { type Scene, Watcher } from "./watcher.js";

/**
 * How long a process may do nothing about its own row: a request that hangs, the rest of its call's time where no request would
 * be answered in it, a pause, and the time between two looks.
 */
const IDLE_MS = 3_000 + 3_000 + 1_500 + 600;
/** How much later with few slots: calls that have to be answered within 10 s go before a look that has more time. */
const IN_LINE_MS = 10_000;

/** For how long after it was sent a claim is looked for. */
const LOOKED_FOR_MS = 9_000;

/** One claim, or those of a set, which come and go together. */
interface Call {
  readonly process: Process;
  readonly sentAt: number;
  /** When the last of their leases is over, on the table's clock. */
  readonly expires: number;
  /** Its first rows, which tell of all of them, because their process looks there. */
  readonly looksAt: readonly Address[];
  /** When its process has last done something about it. */
  heededAt: number;
}

/** On how many rows of a set its process looks: one lock may have been taken off it by force. */
const ROWS_LOOKED_AT = 2;

/** How soon a process begins to look for what a copy in flight may leave: after two requests that hang. */
const LOOKS_WITHIN_MS = 2 * 3_500;

interface Phantom {
  readonly at: Address;
  readonly expires: number;
  readonly call: Call;
  /** When its process has last looked where it would see it. */
  lookedAt: number;
}

/**
 * Claims that have arrived although no section holds them: put there by a call that has ended, or will hear of it. Their
 * process has to do something about them, or everybody else waits for nobody.
 */
export class Phantoms extends Watcher {
  readonly #inLine: { has(process: Process): boolean };
  /** By uuid, those whose process does not know yet that they have arrived. */
  readonly #calls = new Map<string, Call>();
  readonly #rows = new Map<string, Phantom>();
  /** By the uuid of a call's first claim, how many copies of its request may be under way still. */
  readonly #copies = new Map<string, number>();
  /** Calls that were refused while copies are under way: their process has to look for what these may leave. */
  readonly #duties = new Map<string, { readonly call: Call; since: number }>();
  /** By uuid, all there ever were. */
  readonly #all = new Map<string, Call>();

  /** @param inLine the processes whose requests stand in line for few slots. */
  constructor(scene: Scene, inLine: { has(process: Process): boolean }) {
    super(scene);
    this.#inLine = inLine;
  }

  sent(process: Process, message: Message): void {
    const { now } = this;
    const claims = claimsOf(message);
    const [first] = claims;
    if (first !== undefined) {
      const known = this.#all.get(first.uuid);
      const looksAt = claims.slice(0, ROWS_LOOKED_AT).map(({ at }) => at);
      const expires = Math.max(...claims.map((claim) => claim.expires));
      const call = known ?? { process, sentAt: now, expires, looksAt, heededAt: now };
      call.heededAt = now;
      this.#count(message, 1);
      // Another copy asks the row itself.
      this.#duties.delete(first.uuid);
      if (known !== undefined) return;
      for (const { uuid } of claims) {
        this.#calls.set(uuid, call);
        this.#all.set(uuid, call);
      }
    } else if (message.kind === "read") {
      const { at, consistent } = message;
      if (consistent) this.#looked(process, (it) => isSameRow(it, at));
      // Whoever has put a reader's row looks for a writer.
      if (at.sort === WRITER_SORT) this.#goesOn(process, at.name, "shared");
    } else if (message.kind === "query") {
      const { name, first, after = "", last, consistent } = message.query;
      if (consistent)
        this.#looked(process, (at) => at.name === name && first <= at.sort && after < at.sort && at.sort <= last);
      // Whoever has put a writer's row waits for the readers to leave.
      if (first === READERS.first) this.#goesOn(process, name, "exclusive");
    } else if (message.kind === "write" && message.write.kind === "remove") {
      // Each removes what has died on the other side before it enters.
      const { at } = message.write;
      this.#goesOn(process, at.name, at.sort === WRITER_SORT ? "shared" : "exclusive");
    } else if (message.kind === "write" && "uuid" in message.write) {
      this.settle("from" in message.write ? message.write.from : message.write.uuid);
    }
  }

  heard(process: Process, message: Message, answer: Answer): void {
    const [first] = claimsOf(message);
    if (first === undefined) return;
    this.#count(message, -1);
    const call = this.#all.get(first.uuid);
    if (!isRefused(answer, first) || call === undefined || process.crashed) return;
    if ((this.#copies.get(first.uuid) ?? 0) > 0) this.#duties.set(first.uuid, { call, since: this.now });
  }

  turnedDown(message: Message): void {
    this.#count(message, -1);
  }

  #count(message: Message, by: number): void {
    const [first] = claimsOf(message);
    if (first !== undefined) this.#copies.set(first.uuid, (this.#copies.get(first.uuid) ?? 0) + by);
  }

  arrived(message: Message, rows: readonly Change[], duplicate: boolean): void {
    const { now } = this;
    for (const { before, after } of rows) {
      if (before?.uuid !== undefined && before.uuid !== after?.uuid) this.#replaced(message, before.uuid);
    }
    if (duplicate) return;
    for (const { uuid, at, expires } of claimsOf(message)) {
      const call = this.#calls.get(uuid);
      const isThere = rows.some((row) => isSameRow(row.at, at) && row.after?.uuid === uuid);
      if (!isThere || call === undefined || now > call.sentAt + LOOKED_FOR_MS) continue;
      call.heededAt = now;
      this.#rows.set(uuid, { at, expires, call, lookedAt: now });
    }
  }

  /** One about which nothing has been done for too long. One that is over stands in nobody's way. */
  oldest(): string | undefined {
    const { now } = this;
    for (const [uuid, duty] of this.#duties) {
      const { process, expires } = duty.call;
      // A look that gets no slot is given up. What arrives by then has a lease that is over.
      const isOver = this.#inLine.has(process) && expires < this.tableTime;
      if (process.isGone || isOver) this.#duties.delete(uuid);
      else if (process.asleep) duty.since = now;
      else if (now - duty.since > LOOKS_WITHIN_MS + this.#inLineMs(duty.call)) return uuid;
    }
    for (const [uuid, { call, expires, lookedAt }] of this.#rows) {
      if (call.process.isGone || expires < this.tableTime) this.#rows.delete(uuid);
      else if (call.process.asleep) call.heededAt = now;
      else if (now - Math.max(call.heededAt, lookedAt) > IDLE_MS + this.#inLineMs(call)) return uuid;
    }
    return undefined;
  }

  #inLineMs({ process }: Call): number {
    return this.#inLine.has(process) ? IN_LINE_MS : 0;
  }

  /** Whoever looks at a row, looks for its own claim there, and for those of the set at which nobody looks. */
  #looked(process: Process, isShown: (at: Address) => boolean): void {
    for (const [uuid, { call }] of this.#duties) {
      if (call.process === process && call.looksAt.slice(0, 1).some(isShown)) this.#duties.delete(uuid);
    }
    for (const [uuid, { at, call }] of this.#rows) {
      if (call.process !== process || !call.looksAt.some(isShown)) continue;
      if (!isShown(at) && call.looksAt.some((it) => isSameRow(it, at))) continue;
      const phantom = this.#rows.get(uuid);
      if (phantom !== undefined) phantom.lookedAt = this.now;
      if (isShown(at) && this.#sizeOf(call) === 1) this.#rows.delete(uuid);
    }
  }

  /** Its process is about to enter by such a row, and does the next that has to be done for that. */
  #goesOn(process: Process, name: string, kind: "exclusive" | "shared"): void {
    for (const { at, call } of this.#rows.values()) {
      if (call.process === process && at.name === name && lockKindOf(at) === kind) call.heededAt = this.now;
    }
  }

  /** By a release of its own process, or by others: then the rest of a set may be taken for what it is by nobody. */
  #replaced(message: Message, uuid: string): void {
    const call = this.#rows.get(uuid)?.call;
    this.#rows.delete(uuid);
    const isRelease = message.kind === "write" && message.write.kind === "vacate" && !isForced(message.write);
    if (call === undefined || isRelease) return;
    for (const [other, phantom] of this.#rows) if (phantom.call === call) this.#rows.delete(other);
  }

  #sizeOf(call: Call): number {
    return [...this.#calls.values()].filter((it) => it === call).length;
  }

  /**
   * Its process knows that it has arrived. A copy that arrives after its end is nobody's, and ends at its stamp. The
   * others of a set are next.
   */
  settle(uuid: string): void {
    const call = this.#all.get(uuid);
    if (call !== undefined) call.heededAt = this.now;
    this.#rows.delete(uuid);
    this.#calls.delete(uuid);
  }
}

/** The locks' own rows that a message wants to take: who left a place behind is found at the end. */
function claimsOf(message: Message): readonly Take[] {
  const takes = takesOf(message);
  return takes.length === 0 ? takes : takes.filter(({ at }) => lockKindOf(at) !== undefined);
}

/** Whether somebody else's row refuses a claim. */
function isRefused(answer: Answer, { uuid }: Take): boolean {
  if (answer.kind === "write") return answer.outcome.kind === "refused" && answer.outcome.row?.uuid !== uuid;
  return answer.kind === "writeAll" && answer.outcome.kind === "refused" && answer.outcome.rows[0]?.uuid !== uuid;
}
