import { LOCK_SORT } from "../../../lib/protocol/addresses.js";
import type { Answer, Message } from "../../support/message.js";
import type { Process } from "./machine.js";
import { takesOf } from "./message.js";

/** What a call for locks came to, if it got none because they were held. */
export interface Missed {
  /** Whom its error names. Where there is no error, whom its process was shown last counts. */
  readonly named?: string | undefined;
  readonly isTimeout: boolean;
}

/** A call under way. */
interface Call {
  readonly process: Process;
  readonly names: readonly string[];
  /** Its own claims: those that its process has sent for its names since it began, if no other call was beside it. */
  readonly claims: Set<string>;
  isAlone: boolean;
  /** The holder of the row that its process was shown last. */
  shown: string | undefined;
}

/** Sees to it that no call takes a claim of its own, which no section got, for somebody else's. */
export class OwnClaimJudge {
  readonly #calls = new Set<Call>();
  /** All that were ever sent: a further copy is no further claim. */
  readonly #sent = new Set<string>();
  readonly #held = new Set<string>();

  /** A call begins. The answer is called when it has ended, and says what it got wrong, if it did. */
  begins(process: Process, names: readonly string[]): (missed?: Missed) => string | undefined {
    const call: Call = { process, names, claims: new Set(), isAlone: true, shown: undefined };
    for (const other of this.#calls) {
      if (other.process !== process || !other.names.some((name) => names.includes(name))) continue;
      other.isAlone = false;
      call.isAlone = false;
    }
    this.#calls.add(call);
    return (missed) => {
      this.#calls.delete(call);
      if (missed === undefined || !call.isAlone) return undefined;
      const uuid = missed.isTimeout ? missed.named : call.shown;
      const isOwn = uuid !== undefined && call.claims.has(uuid) && !this.#held.has(uuid);
      return isOwn ? `${uuid} is a claim of the very call that found ${names} held` : undefined;
    };
  }

  took(uuid: string): void {
    this.#held.add(uuid);
  }

  /** Whether a section has ever held it. */
  wasHeld(uuid: string): boolean {
    return this.#held.has(uuid);
  }

  sent(process: Process, message: Message): void {
    for (const { at, uuid } of takesOf(message)) {
      if (at.sort !== LOCK_SORT || this.#sent.has(uuid)) continue;
      this.#sent.add(uuid);
      for (const call of this.callsOf(process, at.name)) call.claims.add(uuid);
    }
  }

  heard(process: Process, message: Message, answer: Answer): void {
    if (answer.kind === "query") {
      // Who waits in the queue may be in the way as well.
      for (const call of this.callsOf(process, answer.query.name)) call.shown = undefined;
    } else if (answer.kind === "read" && answer.at.sort === LOCK_SORT) {
      for (const call of this.callsOf(process, answer.at.name)) call.shown = answer.row?.uuid;
    } else if (answer.kind === "write" && answer.write.kind === "take" && answer.write.at.sort === LOCK_SORT) {
      const { outcome } = answer;
      const shown = outcome.kind === "refused" ? outcome.row?.uuid : undefined;
      for (const { at } of takesOf(message)) for (const call of this.callsOf(process, at.name)) call.shown = shown;
    }
  }

  /** Those of a process that are under way for this lock. */
  callsOf(process: Process, name: string): readonly Call[] {
    return [...this.#calls].filter((call) => call.process === process && call.names.includes(name));
  }
}
