import { type Address, kindOf } from "../../../lib/protocol/addresses.js";
import type { Row } from "../../../lib/protocol/row.js";
import { LONGEST_ATTEMPT_MS } from "../../../lib/session/retry.js";
import type { Answer, Message } from "../../support/message.js";
import type { Companions } from "./companions.js";
import type { Process } from "./machine.js";
import { acquiresOf, takesOf } from "./message.js";
import type { Change } from "./network.js";
import { entryOf, type Scene, Watcher } from "./watcher.js";

/** For how long a mark may be believed whatever it says. */
const BELIEVED_MS = 60_000;

/** Timers ring a little early. */
const SLACK_MS = 1;

/** By how much less a process may measure of a time: it is the slower of two stopwatches. */
const SLOWEST = 1 - 2e-3;

/** What is left of a mark that is certainly believed. */
const CURRENT_MS = 1_000;

/** One process has the row, from its take until that of another. Moments are on virtual time. */
interface Tenure {
  readonly process: Process;
  /** When the first take of this process has left. It may not know that others have had the row since. */
  readonly since: number;
  /** When that has arrived. */
  readonly arrivedAt: number;
  /** A mark stays on a row that is handed on, and the first renewal finds it. */
  readonly isResumed: boolean;
}

/** A take, or what goes on with a lease that was handed off. */
interface Taken {
  readonly process: Process;
  readonly sentAt: number;
  readonly at: Address;
  readonly isResumed: boolean;
}

interface Mark {
  readonly arrivedAt: number;
  readonly until: number;
}

/** A section, as far as it matters whether others wait for it. */
interface Section {
  readonly uuid: string;
  readonly process: Process;
  readonly handOverMs: number;
}

interface Since {
  readonly takenAt: number;
  readonly disturbed: boolean;
}

/**
 * Watches `lock.wanted`:
 *
 * - It is never true where nobody has marked the row. A mark may be believed for a minute, and longer by how much a server's
 *   clock is behind: who has heard of that time as well cannot know that the mark is over.
 * - A mark that was there at the take, and may be the process's own, counts only once the process has had the row for `handOverMs`,
 *   as far as it knows: others may have had it in between. Where a further call of it waits for the same lock, that may have
 *   seen the row as it was before. Where a server's clock is behind, one that was over at the take may be found again.
 * - One that a renewal has found counts: at once, where the process knew of none before.
 */
export class WantedJudge extends Watcher {
  readonly #believedMs: number;
  readonly #companions: Companions;
  readonly #marks = new Map<string, Mark[]>();
  readonly #tenures = new Map<string, Tenure>();
  /** When the first copy of each take has left, and whose it is. */
  readonly #taken = new Map<string, Taken>();
  /** When each process has first taken a row. */
  readonly #firsts = new WeakMap<Process, Map<string, number>>();
  /** The rows of which a process has known a mark. */
  readonly #known = new WeakMap<Process, Set<string>>();
  /** Until when each process may be shown a marked row of another, or its own mark, as it was before its own take. */
  readonly #shownLate = new WeakMap<Process, Map<string, number>>();
  /** By uuid: until when the mark says that others wait which a renewal has found, and when the first was found. */
  readonly #found = new Map<string, { readonly until: number; readonly firstAt: number | undefined }>();

  /** @param behindMs by how much a server's clock is behind. */
  constructor(scene: Scene, behindMs: number, companions: Companions) {
    super(scene);
    this.#companions = companions;
    this.#believedMs = BELIEVED_MS + behindMs;
  }

  sent(process: Process, message: Message): void {
    for (const { kind, uuid, at } of acquiresOf(message)) {
      const isResumed = kind === "transfer";
      if (!this.#taken.has(uuid)) this.#taken.set(uuid, { process, sentAt: this.now, at, isResumed });
    }
    for (const { at, wanted } of takesOf(message)) if (wanted !== undefined) this.#knows(process, at);
    if (message.kind !== "write" || message.write.kind !== "want") return;
    const { at } = message.write;
    this.#knows(process, at);
    // It may hear of its own mark when it has taken the row.
    this.#mayBeShown(process, at, this.now + LONGEST_ATTEMPT_MS);
  }

  arrived(message: Message, { at, after, hasChanged }: Change): void {
    const key = keyOf(at);
    if (message.kind === "write" && message.write.kind === "want" && hasChanged) {
      entryOf(this.#marks, key, () => []).push({ arrivedAt: this.now, until: message.write.until });
    }
    const taken = after?.uuid === undefined ? undefined : this.#taken.get(after.uuid);
    if (taken === undefined || this.#tenures.get(key)?.process === taken.process) return;
    const { process, isResumed } = taken;
    const firsts = entryOf(this.#firsts, process, () => new Map<string, number>());
    const since = entryOf(firsts, key, () => taken.sentAt);
    this.#tenures.set(key, { process, since, arrivedAt: this.now, isResumed });
  }

  /** A reply that a process has heard. */
  heard(process: Process, answer: Answer): void {
    if (answer.kind === "read") this.#sees(process, answer.row);
    if (answer.kind === "query") {
      // Nothing is made of a page before the next has come.
      const shown = this.#shownLate.get(process) ?? new Map<string, number>();
      const { name, after } = answer.query;
      if (after !== undefined) for (const key of shown.keys()) if (key.endsWith(`/${name}`)) shown.set(key, this.now);
      for (const row of answer.page.rows) this.#sees(process, row);
    }
    if (answer.kind === "writeAll" && answer.outcome.kind === "refused")
      for (const row of answer.outcome.rows) this.#sees(process, row);
    if (answer.kind !== "write" || !("replaced" in answer.outcome || "row" in answer.outcome)) return;
    const { write, outcome } = answer;
    const row = outcome.kind === "applied" ? outcome.replaced : outcome.row;
    if (row?.wanted === undefined) return;
    const isFirst = this.#sees(process, row);
    if (write.kind === "renew" && outcome.kind === "applied")
      this.#found.set(write.uuid, {
        until: row.wanted,
        firstAt: isFirst ? this.now : this.#found.get(write.uuid)?.firstAt,
      });
  }

  /** A section has told that others wait. @returns what is wrong with that. */
  told(section: Section): string | undefined {
    // Of several permits, a mark on any of them counts.
    const wrong = this.#companions.of(section.uuid).map((uuid) => this.#toldOf({ ...section, uuid }));
    return wrong.includes(undefined) ? undefined : wrong[0];
  }

  #toldOf({ uuid, process, handOverMs }: Section): string | undefined {
    const taken = this.#taken.get(uuid);
    if (taken === undefined) return undefined;
    const key = keyOf(taken.at);
    const now = this.tableTime;
    const marks = (this.#marks.get(key) ?? []).filter(({ until }) => until + this.#believedMs > now);
    if (marks.length === 0) return `${uuid} is wanted, and nobody has marked its row`;
    const tenure = this.#tenures.get(key);
    if (tenure?.process !== process) return undefined;
    if (tenure.isResumed || marks.some(({ arrivedAt }) => arrivedAt >= tenure.arrivedAt)) {
      this.count("locks wanted: a mark found later");
      return undefined;
    }
    this.count("locks wanted: a mark known at the take");
    if ((this.#shownLate.get(process)?.get(key) ?? Number.NEGATIVE_INFINITY) >= tenure.arrivedAt) return undefined;
    const hadMs = this.now - tenure.since;
    if (hadMs >= handOverMs - SLACK_MS) return undefined;
    if (this.#believedMs > BELIEVED_MS && marks.every(({ until }) => until <= now)) return undefined;
    return `${uuid} is wanted after ${hadMs} ms of ${handOverMs} by a mark from before its take`;
  }

  /**
   * Whether a section has to count as wanted at this moment, if it is held.
   * @param disturbed its process was suspended, or its clock was set: then its stopwatches have counted less than the time that
   * has passed.
   */
  expects({ uuid, handOverMs, takenAt, disturbed }: Pick<Section, "uuid" | "handOverMs"> & Since): boolean {
    const found = this.#found.get(uuid);
    if (found === undefined || found.until < this.tableTime + CURRENT_MS) return false;
    // One that is found before the section begins counts as one that was there at the take.
    const isFoundLater = found.firstAt !== undefined && found.firstAt > takenAt;
    const isTurnOver = !disturbed && (this.now - takenAt) * SLOWEST - SLACK_MS > handOverMs;
    const isKnown = isFoundLater || isTurnOver;
    if (isKnown) this.count("sections that have to know that others wait");
    return isKnown;
  }

  /** It is shown a row. @returns whether it has known of no mark on it before. */
  #sees(process: Process, row: Row | undefined): boolean {
    if (row?.wanted === undefined) return false;
    const isOfOthers = row.uuid !== undefined && this.#taken.get(row.uuid)?.process !== process;
    if (isOfOthers) this.#mayBeShown(process, row, this.now);
    return this.#knows(process, row);
  }

  /** Until a moment it may be shown a row as that was before its own take. */
  #mayBeShown(process: Process, at: Address, until: number): void {
    const shown = entryOf(this.#shownLate, process, () => new Map<string, number>());
    shown.set(keyOf(at), Math.max(until, shown.get(keyOf(at)) ?? 0));
  }

  /** @returns whether it has known of none before. */
  #knows(process: Process, at: Address): boolean {
    const known = entryOf(this.#known, process, () => new Set<string>());
    const isFirst = !known.has(keyOf(at));
    known.add(keyOf(at));
    return isFirst;
  }
}

/** Nobody waits for the shared side, which is never wanted. */
const keyOf = ({ name, sort }: Address): string => `${kindOf(sort) === "reader" ? "shared" : sort}/${name}`;
