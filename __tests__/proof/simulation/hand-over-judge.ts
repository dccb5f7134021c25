import { LOCK_SORT, RESULT_AND_LOCK } from "../../../lib/protocol/addresses.js";
import { markInNumber } from "../../../lib/protocol/mark.js";
import type { Row } from "../../../lib/protocol/row.js";
import type { Take } from "../../../lib/protocol/writes.js";
import type { Answer, Message } from "../../support/message.js";
import type { Holding } from "./invariants.js";
import type { Process } from "./machine.js";
import { isForced } from "./message.js";
import { TurnJudge } from "./turn-judge.js";
import { entryOf, Watcher } from "./watcher.js";

/** By how much a process may measure less than its own stopwatch shows here: readings at the same moment differ by nothing. */
const SLACK_MS = 1;

/** For how long a process stands back for a mark that does not say how long its writer needs: two of the longest polls. */
const UNSAID_NEED_MS = 2 * 400;

/** A look that has no slot is given up after a quarter of the lease, and the shortest lasts 400 ms: then the lease passes on. */
const LEAST_LOOK_MS = 98;

/** A timer may ring a little early. */
const EARLY_MS = 2;

/** When a process stands back for others, on its own stopwatch. */
interface Standing {
  readonly since: number;
  readonly until: number;
}

/** A look for the results of a name, with all of its attempts. */
interface ResultLook {
  /** When its slot was asked for. */
  readonly queuedAt: number;
  /** When it may have been asked for: one that leaves as the look before it is answered may have waited for that. */
  readonly askedFrom: number;
  answeredAt: number | undefined;
  /** Whether a claim has gone by it in the turn of others. */
  isUsed: boolean;
}

/** A call for a flight that has had no answer so far. */
interface Flying {
  readonly process: Process;
  readonly name: string;
  readonly begunAt: number;
}

/** A lease that one section after the other runs on, under one uuid or several. */
interface Passed {
  readonly name: string;
  readonly process: Process;
  readonly handOverMs: number;
  /** When it was last looked for a mark of others; when it was taken, before. On the machine's monotonic clock, as all here. */
  lookedAt: number;
  /** When the section before has ended; undefined while one runs. */
  endedAt: number | undefined;
  /** Whether a look has shown such a mark. */
  isWanted: boolean;
  /** Whether the section that has ended last had made a guard. */
  wasGuarded: boolean;
}

/**
 * Watches how the sections of one process pass a lease on: not for longer than `handOverMs` without a look whether
 * others wait, and not at all when they do. Whatever its sections ask for, others are let in after its turn: see
 * {@link TurnJudge}.
 */
export class HandOverJudge extends Watcher {
  readonly #leases = new Map<string, Passed>();
  /** Under which name each uuid was held, and by whom. */
  readonly #places = new Map<string, { readonly name: string; readonly process: Process }>();
  /** Until when a process claims no lock that others wait for, while its own calls stay as they are. */
  readonly #standing = new Map<Process, Map<string, Standing>>();
  /** Claims of which a copy has left: one that asked before a late release was answered goes on. */
  readonly #claimed = new Set<string>();
  /** Reads that were sent between two sections. */
  readonly #looks = new WeakSet<Message>();
  /** Leases whose release is under way, by uuid. */
  readonly #releasing = new Map<string, Passed>();
  readonly #turns = new TurnJudge(this.scene);
  /** When what is being sent was asked for: it may have waited for a slot. */
  #askedAt: number | undefined;
  /** When each process has last sent a look for the results of a name: the claim of a flight waits for its answer. */
  readonly #resultLooks = new Map<Process, Map<string, ResultLook>>();
  readonly #flying = new Set<Flying>();
  /** Processes with a set under way: their reads are not told from looks. */
  readonly #sets = new Map<Process, number>();

  /** A section begins. @returns what is wrong with its getting the lease of another. */
  took({ name, uuid, process, handOverMs }: Holding): string | undefined {
    if (handOverMs === undefined) return undefined;
    this.#turns.took(process, name);
    const lease = this.#leases.get(uuid);
    if (lease === undefined) {
      const lookedAt = process.time.monotonic();
      const fresh = { endedAt: undefined, isWanted: false, wasGuarded: false };
      this.#places.set(uuid, { name, process });
      this.#leases.set(uuid, { name, process, handOverMs, lookedAt, ...fresh });
      return undefined;
    }
    this.count("sections that got the lease of another");
    if (lease.wasGuarded) this.count("leases passed on after a guard");
    const unseenMs = (lease.endedAt ?? 0) - lease.lookedAt;
    const endedMs = process.time.monotonic() - (lease.endedAt ?? 0);
    lease.endedAt = undefined;
    lease.wasGuarded = false;
    if (lease.isWanted) return `${uuid} is passed on although its process has seen that others wait`;
    if (unseenMs <= lease.handOverMs + SLACK_MS) return undefined;
    if (endedMs < LEAST_LOOK_MS) return `${uuid} is passed on after ${unseenMs} ms without a look`;
    this.count("leases passed on after a look that got no slot");
    return undefined;
  }

  /** A section has ended, and its lease is free for the next. */
  ended(uuid: string, { isGuarded }: { readonly isGuarded: boolean }): void {
    const lease = this.#leases.get(uuid);
    if (lease === undefined) return;
    lease.endedAt = lease.process.time.monotonic();
    lease.wasGuarded = isGuarded;
  }

  /** Sends what was asked for at this moment of the machine's monotonic clock. */
  sendAsAsked<T>(askedAt: number, send: () => T): T {
    this.#askedAt = askedAt;
    try {
      return send();
    } finally {
      this.#askedAt = undefined;
    }
  }

  /** What a process sends. @returns what it should have left to others. */
  sent(process: Process, message: Message): string | undefined {
    if (message.kind === "read" && !message.consistent && message.at.sort === LOCK_SORT) {
      const looking = this.#between(process, message.at.name);
      for (const lease of looking) lease.lookedAt = process.time.monotonic();
      // While a set waits, its polls are not told from looks, also where the answer comes after its end.
      if (looking.length > 0 && !this.#sets.has(process)) this.#looks.add(message);
    }
    if (message.kind === "query" && message.query.first === RESULT_AND_LOCK.first) {
      const looks = entryOf(this.#resultLooks, process, () => new Map<string, ResultLook>());
      const { name } = message.query;
      // A further attempt is part of the same look.
      const last = looks.get(name);
      if (last === undefined || last.answeredAt !== undefined) {
        const queuedAt = this.#askedAt ?? process.time.monotonic();
        const waited = last?.answeredAt !== undefined && queuedAt - last.answeredAt <= SLACK_MS;
        looks.set(name, {
          queuedAt,
          askedFrom: waited ? last.queuedAt : queuedAt,
          answeredAt: undefined,
          isUsed: false,
        });
      }
    }
    if (message.kind !== "write" || message.write.at.sort !== LOCK_SORT) return undefined;
    const { write } = message;
    // While a set waits, its marks are not told from others.
    if (write.kind === "want" && !this.#sets.has(process)) return this.#turns.marks(process, write.at.name);
    if (write.kind === "reissue") {
      const lease = this.#leases.get(write.from);
      if (lease !== undefined) {
        this.#leases.set(write.uuid, lease);
        this.#places.set(write.uuid, lease);
      }
    }
    if (write.kind === "vacate" && !isForced(write)) {
      const lease = this.#leases.get(write.uuid);
      if (lease !== undefined) {
        this.#releasing.set(write.uuid, lease);
      } else if (this.#places.has(write.uuid) && !this.#releasing.has(write.uuid)) {
        // Its section has been told that it is over before this had a slot: when it is answered, others have their turn.
        this.#turns.sees(process, write.at.name);
      }
      this.gone(write.uuid);
    }
    if (write.kind !== "take") return undefined;
    const now = process.time.monotonic();
    const { since = now, until = now } = this.#standing.get(process)?.get(write.at.name) ?? {};
    // A claim that waits for a slot, or for the look of its flight, goes on if it had asked when the turn of others began.
    const hasAsked = since >= (this.#askedAt ?? now) || (until > now && this.#usesLook(process, write, since));
    const early = this.#claimed.has(write.uuid) || hasAsked ? 0 : until - now;
    if (hasAsked && until > now) this.count("claims that had asked before the turn of others began");
    this.#claimed.add(write.uuid);
    // A try for a tick does not wait for its turn, as the tick comes but once, and begins one where others are let in.
    if (write.tick !== undefined) this.#turns.sees(process, write.at.name);
    else if (early > 0) return `${write.uuid} is claimed ${early} ms before others have had their turn`;
    return this.#turns.carries(process, write);
  }

  /**
   * Whether a claim goes by a look that a flight had asked for when the turn of others began, and that was answered after that. No
   * other claim goes by that look.
   */
  #usesLook(process: Process, { after, at: { name } }: Take, since: number): boolean {
    const look = after && this.#resultLooks.get(process)?.get(name);
    if (look?.answeredAt === undefined || look.isUsed || look.askedFrom > since || look.answeredAt < since)
      return false;
    const isFor = (it: Flying): boolean => it.process === process && it.name === name && it.begunAt <= since;
    look.isUsed = [...this.#flying].some(isFor);
    return look.isUsed;
  }

  /** A release has shown the row as it was. */
  #released(process: Process, uuid: string, row: Row | undefined): void {
    const lease = this.#releasing.get(uuid);
    this.#releasing.delete(uuid);
    if (lease !== undefined && this.#turns.released(process, lease, row))
      this.#standsBack(process, lease.name, row?.wanted);
  }

  /** @param forMs for how long the mark lasts. */
  #standsBack(process: Process, name: string, wanted = 0, forMs = Number.POSITIVE_INFINITY): void {
    const standing = entryOf(this.#standing, process, () => new Map<string, Standing>());
    const { needMs = UNSAID_NEED_MS } = markInNumber(wanted);
    if (needMs > UNSAID_NEED_MS) this.count("processes that stood back for a waiter far away");
    const since = process.time.monotonic();
    standing.set(name, { since, until: since + Math.min(needMs - EARLY_MS, forMs) });
    this.#turns.sees(process, name);
  }

  /** It is about to be handed off, which nobody's turn depends on, whatever comes of it. */
  handsOff(uuid: string): void {
    const lease = this.#leases.get(uuid);
    if (lease === undefined) return;
    this.#turns.sees(lease.process, lease.name);
    this.gone(uuid);
  }

  /** It is given back, given up, or lost. */
  gone(uuid: string): void {
    const lease = this.#leases.get(uuid);
    if (lease === undefined) return;
    // Also where its release gets no slot: its process leaves the row alone from here on.
    this.#turns.left(lease.process, lease.name);
    for (const [alias, it] of this.#leases) if (it === lease) this.#leases.delete(alias);
  }

  /** Then the next of its process leads at once: there is nobody to be let in. */
  lost(uuid: string): void {
    const place = this.#places.get(uuid);
    if (place !== undefined) {
      this.#standing.get(place.process)?.delete(place.name);
      this.#turns.sees(place.process, place.name);
    }
    this.#releasing.delete(uuid);
    this.gone(uuid);
  }

  /** A reply that a process has heard. */
  heard(process: Process, message: Message, answer: Answer): void {
    if (answer.kind === "write" && answer.write.at.sort === LOCK_SORT) {
      const { write, outcome } = answer;
      if (write.kind === "vacate" && !isForced(write)) {
        this.#released(process, write.uuid, outcome.kind === "applied" ? outcome.replaced : undefined);
        // Ended by force: the next of its process asks at once, before anybody is told of the loss.
        if (outcome.kind === "refused" && outcome.row !== undefined && outcome.row.uuid === undefined)
          this.lost(write.uuid);
      }
      if (write.kind === "take" && outcome.kind === "refused") this.#turns.refused(process, write.at.name);
      // A renewal before the first section, after a slow take, may show a mark: it is known as the turn begins.
      if (write.kind === "renew" && !this.#places.has(write.uuid)) this.#turns.sees(process, write.at.name);
      if (write.kind === "take" && outcome.kind === "applied" && outcome.replaced !== undefined)
        this.#turns.sees(process, write.at.name);
    }
    if (answer.kind === "writeAll") {
      const isTaken = answer.outcome.kind === "applied";
      for (const { at } of answer.takes) {
        this.#turns.sees(process, at.name);
        // A set that asked before the release was answered begins a turn of its own.
        if (isTaken) this.#standing.get(process)?.delete(at.name);
      }
    }
    if (answer.kind === "query" && answer.query.first === RESULT_AND_LOCK.first) {
      const look = this.#resultLooks.get(process)?.get(answer.query.name);
      if (look !== undefined) look.answeredAt ??= process.time.monotonic();
    }
    // A look for results shows who has the row as well.
    if (answer.kind === "query" && answer.page.rows.some(({ sort, uuid }) => sort === LOCK_SORT && uuid !== undefined))
      this.#turns.sees(process, answer.query.name);
    if (answer.kind !== "read" || answer.at.sort !== LOCK_SORT) return;
    const { row, at } = answer;
    // A poll of a wait that has ended may be answered now, and tells nobody anything.
    if (!this.#looks.has(message) || this.#sets.has(process)) {
      this.#turns.looked(process, at.name);
      return;
    }
    if (row?.wanted === undefined || row.wanted <= this.tableTime) return;
    for (const lease of this.#between(process, at.name)) {
      lease.isWanted = true;
      this.count("leases given back because others wait");
      // A mark that is over by the time of the release keeps nobody back.
      this.#standsBack(process, at.name, row.wanted, row.wanted - this.tableTime);
    }
  }

  /** A process uses a mutex of this name that is not fair. */
  takesTurns(process: Process, name: string): void {
    this.#turns.begin(process, name);
  }

  /** A process calls for a flight; what is answered says that the call has ended. */
  flies(process: Process, name: string): () => void {
    const flying = { process, name, begunAt: process.time.monotonic() };
    this.#flying.add(flying);
    return () => this.#flying.delete(flying);
  }

  /** A process begins to want a set; the answer says that it has it, or wants it no more. */
  wantsSet(process: Process): () => void {
    this.#sets.set(process, (this.#sets.get(process) ?? 0) + 1);
    return () => {
      const left = (this.#sets.get(process) ?? 1) - 1;
      if (left > 0) this.#sets.set(process, left);
      else this.#sets.delete(process);
    };
  }

  /** The leases of this process that no section runs on. */
  #between(process: Process, name: string): readonly Passed[] {
    const leases = new Set(this.#leases.values());
    return [...leases].filter((it) => it.process === process && it.name === name && it.endedAt !== undefined);
  }
}
