import type { GuardedWrites, Row, Stamped } from "../../lib/store.js";
import type { Coverage } from "./coverage.js";
import type { Process } from "./machine.js";
import type { MemoryTable, Operation, Outcome } from "./memory-store.js";
import type { Arrival } from "./network.js";
import { Phantoms } from "./phantoms.js";
import type { SimLock } from "./protocol.js";
import { QueueJudge } from "./queue-judge.js";
import type { Scheduler } from "./scheduler.js";

/** What must hold at every step. Named after what is promised. */
export type Invariant =
  | "one holder"
  | "tokens grow from lock to lock"
  | "a tick runs once"
  | "a hold lasts"
  | "a guard commits for its holder alone"
  | "an own write is recognised"
  | "a loss tells the truth"
  | "the row stands while it is held"
  | "expires never moves back"
  | "an ended uuid stays ended"
  | "a loss is told in time"
  | "a release tells the truth"
  | "a free lock is obtained"
  | "first come, first served"
  | "nobody enters without a place"
  | "a lock is not lost without a cause"
  | "a call ends as documented"
  | "every promise settles"
  | "no timer is left"
  | "a wait leaves nothing behind";

export class Violation extends Error {
  override readonly name = "Violation";
  readonly invariant: Invariant;

  constructor(invariant: Invariant, detail: string) {
    super(`${invariant}: ${detail}`);
    this.invariant = invariant;
  }
}

/** A lock that its program holds, from when it gets it to when it gives it back. */
export interface Holding {
  readonly name: string;
  readonly uuid: string;
  readonly lock: SimLock;
  readonly process: Process;
  readonly takenAt: number;
  /** Whether the signal has told its program of a loss. Asking the lock would make it look, and so change the world. */
  told: boolean;
  /** Whether its machine stood still or its clock was set in the meantime: then a timer may rightly be late. */
  disturbed: boolean;
  /** Whether it was taken when the faults were over: then nothing can take it away. */
  readonly calm: boolean;
}

/** How long it may take a process that was shown its own claim on the row to act on it. */
const RECOGNISED_WITHIN_MS = 500;

/** A clock that runs fast by what the protocol allows, and a bit. */
const SLOWEST = 1 - 1e-3;

/** By how much the clocks of those who wait may lag behind the one that parked a row. */
const MOST_DOUBT_MS = 2_000;

/** How long after its end on the table's clock a loss may still be untold: the timer's own lag, and none of the margin. */
const TOLD_WITHIN_MS = 3;

/** Watches the whole world, and throws a {@link Violation} at the first step that breaks a promise. */
export class Judge {
  readonly #scheduler: Scheduler;
  readonly #table: MemoryTable;
  readonly #coverage: Coverage;
  readonly #epoch: number;
  readonly #queue: QueueJudge;
  readonly #holdings = new Set<Holding>();
  /** The latest stamp that was ever sent under a uuid. */
  readonly #stamps = new Map<string, number>();
  /** The last fencing token that was handed out for a name. */
  readonly #tokens = new Map<string, bigint>();
  /** Those that some section held. */
  readonly #known = new Set<string>();
  readonly #ticks = new Map<string, number>();
  /** Until when a lock stays taken that has been released, on the table's clock. */
  readonly #holds = new Map<string, number>();
  /** Claims that a refusal showed to their own process. */
  readonly #shown = new Map<string, { readonly process: Process; readonly since: number }>();
  readonly #phantoms: Phantoms;
  #blamed: Violation | undefined;
  readonly #committed = new Set<string>();
  /** Those whose lock was taken away: they end as their lease stood, hold or not. */
  readonly #forced = new Set<string>();
  readonly #ended = new Set<string>();
  /** Those whose row was there, and then was not. */
  readonly #gone = new Set<string>();
  readonly #revived = new Set<string>();

  constructor(scheduler: Scheduler, table: MemoryTable, coverage: Coverage, epoch: number) {
    this.#scheduler = scheduler;
    this.#table = table;
    this.#coverage = coverage;
    this.#epoch = epoch;
    this.#queue = new QueueJudge(scheduler, table, coverage, epoch);
    this.#phantoms = new Phantoms(scheduler);
  }

  get holdings(): ReadonlySet<Holding> {
    return this.#holdings;
  }

  /** Uuids whose row a late copy made or brought back. */
  get revived(): ReadonlySet<string> {
    return this.#revived;
  }

  /** Rows of waiters that a late copy made. */
  get strays(): ReadonlySet<string> {
    return this.#queue.strays;
  }

  /** Whether somebody has the lock, or nobody may yet. */
  isHeld(name: string): boolean {
    const row = this.#table.rows.get(name);
    if (
      row !== undefined &&
      row.uuid === undefined &&
      row.expires + MOST_DOUBT_MS > this.#epoch + this.#scheduler.now
    ) {
      return true;
    }
    for (const holding of this.#holdings) if (holding.name === name) return true;
    return false;
  }

  /** The clock of a process was set. */
  confused(process: Process): void {
    this.#phantoms.confused(process);
  }

  /** A call begins to want a lock; the answer says that it has it, or wants it no more. */
  asks(process: Process, name: string): () => void {
    return this.#queue.asks(process, name);
  }

  took(holding: Holding): void {
    const overtaken = this.#queue.took(holding.uuid);
    if (overtaken !== undefined) throw new Violation("first come, first served", overtaken);
    this.#holdings.add(holding);
    this.#shown.delete(holding.uuid);
    this.#phantoms.took(holding.uuid);
    if (this.#known.has(holding.uuid)) this.#coverage.count("sections that got the lease of another");
    this.#known.add(holding.uuid);
    const { fencingToken } = holding.lock;
    if (fencingToken !== undefined) this.#drew(holding.name, fencingToken);
    if (holding.lock.tick !== undefined) this.#ticked(holding.name, holding.lock.tick);
    const left = (this.#holds.get(holding.name) ?? 0) - this.#scheduler.now;
    if (left > 0) throw new Violation("a hold lasts", `${holding.uuid} was taken ${left} ms before its end`);
    if (this.#ended.has(holding.uuid))
      throw new Violation("an ended uuid stays ended", `${holding.uuid} is held again`);
  }

  /** A lock was released before its hold was over: nobody gets it until then. */
  holdsOn({ name, uuid, takenAt }: Holding, holdAtLeastMs: number): void {
    const rest = takenAt + holdAtLeastMs * SLOWEST - this.#scheduler.now;
    if (rest <= 0 || this.#forced.has(uuid)) return;
    this.#coverage.count("locks held past their section");
    this.#holds.set(name, this.#scheduler.now + rest);
  }

  #ticked(name: string, tick: number): void {
    const last = this.#ticks.get(name);
    if (last !== undefined && tick <= last) throw new Violation("a tick runs once", `${last}, then ${tick}`);
    this.#ticks.set(name, tick);
    this.#coverage.count("ticks");
  }

  #drew(name: string, token: bigint): void {
    const last = this.#tokens.get(name);
    if (last !== undefined && token <= last)
      throw new Violation("tokens grow from lock to lock", `${last}, then ${token}`);
    this.#tokens.set(name, token);
    this.#coverage.count("fencing tokens");
  }

  /** From here on its program no longer counts on it. */
  gaveBack(holding: Holding): void {
    this.#holdings.delete(holding);
  }

  /** A reply has come to whoever waits for it. */
  heard(process: Process, operation: Operation, outcome: Outcome): void {
    this.#queue.heard(process, operation, outcome);
    if (operation.kind !== "take" || outcome.kind !== "held" || outcome.row.uuid !== operation.claim.uuid) return;
    this.#shown.set(operation.claim.uuid, { process, since: this.#scheduler.now });
  }

  /** The library has told of a loss. Nobody but its own process may take a row from its holder, but by force. */
  told(uuid: string, reason: string): void {
    if (reason !== "stolen" && reason !== "deleted") return;
    this.blame(new Violation("a loss tells the truth", `${uuid} was not ${reason}`));
  }

  /** A violation that was seen where nobody awaits it. */
  blame(violation: Violation): void {
    this.#blamed ??= violation;
  }

  sent(process: Process, operation: Operation): void {
    const trespass = this.#queue.sent(process, operation);
    if (trespass !== undefined) throw new Violation("nobody enters without a place", trespass);
    this.#phantoms.sent(process, operation);
    if ("uuid" in operation) this.#shown.delete(operation.uuid);
    if (operation.kind === "restamp") this.#shown.delete(operation.from.uuid);
    if (operation.kind === "read" || operation.kind === "want" || operation.kind === "force") return;
    if (operation.kind === "ticket") return;
    if (operation.kind === "transact") return;
    // From its release on, a uuid is nobody's: no section runs on it, and no write extends it.
    if (operation.kind === "release") {
      this.#ended.add(operation.uuid);
      for (const { uuid } of this.#holdings) {
        if (uuid === operation.uuid)
          throw new Violation("an ended uuid stays ended", `${uuid} is released while it is held`);
      }
      return;
    }
    const stamps = operation.kind === "takeAll" ? operation.takes.map(({ claim }) => claim) : [stampOf(operation)];
    for (const { uuid, expires } of stamps) {
      if (this.#ended.has(uuid))
        throw new Violation("an ended uuid stays ended", `a ${operation.kind} is sent for ${uuid}`);
      this.#stamps.set(uuid, Math.max(expires, this.#stamps.get(uuid) ?? 0));
    }
  }

  arrived(arrival: Arrival): void {
    const { operation, outcome, before, after, duplicate } = arrival;
    this.#queue.arrived(arrival);
    if (operation.kind === "transact" && outcome.kind === "committed") this.#commits(operation, before);
    if (after === before) return;
    this.#phantoms.arrived(operation, before, after, duplicate);
    if (operation.kind === "force") this.#forced.add(operation.uuid);
    if (before?.uuid !== undefined && before.uuid !== after?.uuid) this.#gone.add(before.uuid);
    if (after?.uuid === undefined) return;
    const { uuid } = after;
    if (before?.uuid === uuid && after.expires < before.expires) {
      const detail = `${operation.kind} of ${uuid} from ${before.expires} to ${after.expires}`;
      throw new Violation("expires never moves back", detail);
    }
    if (duplicate && operation.kind === "take") this.#revived.add(uuid);
    if (!this.#gone.has(uuid)) return;
    this.#revived.add(uuid);
    if (before?.uuid !== uuid) this.#coverage.count("rows that a late copy brought back");
    if (after.expires > (this.#stamps.get(uuid) ?? 0)) {
      throw new Violation("an ended uuid stays ended", `${uuid} lasts until ${after.expires}`);
    }
  }

  /**
   * A late copy of the take, then one of a renewal, and then one of the transaction itself, all after the release, make
   * a row that nothing tells from the holder's. What is promised is that two of them are not enough; a token is.
   */
  #commits({ guard, token }: GuardedWrites, row: Row | undefined): void {
    if (this.#committed.has(token)) return;
    this.#committed.add(token);
    this.#coverage.count("guarded writes");
    if (!this.#gone.has(guard.uuid)) return;
    const isChain = guard.fence === undefined && row?.uuid === guard.uuid && row.expires > guard.after;
    if (!isChain) throw new Violation("a guard commits for its holder alone", `${guard.uuid} had gone`);
    this.#coverage.count("guarded writes after three late copies in a row");
  }

  /** Looks at the world between two steps. */
  readonly observe = (): void => {
    if (this.#blamed !== undefined) throw this.#blamed;
    for (const holding of this.#holdings) {
      if (holding.process.crashed) this.#holdings.delete(holding);
      else if (!holding.process.asleep && !holding.told) this.#check(holding);
    }
    const phantom = this.#phantoms.oldest(this.#epoch + this.#scheduler.now);
    if (phantom !== undefined) throw new Violation("a wait leaves nothing behind", `nobody looks for ${phantom}`);
    for (const [uuid, { process, since }] of this.#shown) {
      if (process.crashed) this.#shown.delete(uuid);
      else if (process.asleep) this.#shown.set(uuid, { process, since: this.#scheduler.now });
      else if (this.#scheduler.now - since > RECOGNISED_WITHIN_MS) {
        throw new Violation("an own write is recognised", `${uuid} is on the row, and its process waits`);
      }
    }
  };

  #check(holding: Holding): void {
    const { name, uuid, lock } = holding;
    const row = this.#table.rows.get(name);
    for (const other of this.#holdings) {
      if (other !== holding && other.name === name && !other.process.crashed && other.lock.held && lock.held) {
        throw new Violation("one holder", `${uuid} and ${other.uuid} both hold ${name}`);
      }
    }
    // Where it was unlocked by force, nobody enters before the lease ends as it stood.
    // A look at `held` makes a lock that is over say so, and changes the world: only where something is odd.
    const forced = row !== undefined && row.uuid === undefined && row.expires > 0;
    if (row?.uuid !== uuid && !forced && lock.held) {
      const there = row === undefined ? "there is none" : `it is ${row.uuid}'s`;
      throw new Violation("the row stands while it is held", `${uuid} holds ${name}, but its row: ${there}`);
    }
    const over = this.#epoch + this.#scheduler.now - lock.expires.getTime();
    if (over > TOLD_WITHIN_MS && !holding.told && !holding.disturbed) {
      throw new Violation("a loss is told in time", `${uuid} was over ${over} ms ago`);
    }
  }
}

/** What a write of a holder puts on the row. */
function stampOf(
  operation: Exclude<Operation, { kind: "read" | "want" | "force" | "release" | "transact" | "takeAll" | "ticket" }>,
): Stamped {
  switch (operation.kind) {
    case "take":
      return operation.claim;
    case "restamp":
    case "reissue":
      return operation.to;
    case "renew":
      return operation;
    default:
      return operation satisfies never;
  }
}
