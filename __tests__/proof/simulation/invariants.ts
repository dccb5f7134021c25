import { type Address, kindOf, lockAt, permitOf, writerAt } from "../../../lib/protocol/addresses.js";
import type { Attributes, Row } from "../../../lib/protocol/row.js";
import type { Write } from "../../../lib/protocol/writes.js";
import type { Answer, Message } from "../../support/message.js";
import { Companions } from "./companions.js";
import { FlightJudge } from "./flight-judge.js";
import { FreeRowJudge } from "./free-row-judge.js";
import { GuardJudge } from "./guard-judge.js";
import { type HandOff, HandOffJudge, overlap } from "./hand-off-judge.js";
import { HandOverJudge } from "./hand-over-judge.js";
import { JoinJudge } from "./join-judge.js";
import { LineJudge } from "./line-judge.js";
import { type Asking, type Kind, lockKindOf, shortUuids } from "./locks.js";
import type { Process } from "./machine.js";
import { isForced, takesOf } from "./message.js";
import type { Arrival, Change, Sender } from "./network.js";
import { type Missed, OwnClaimJudge } from "./own-claim-judge.js";
import { Phantoms } from "./phantoms.js";
import type { SimLock, SimSet } from "./protocol.js";
import { MUTEX_PLACES, permitPlaces, QueueJudge, SIDES_PLACES } from "./queue-judge.js";
import type { Step } from "./schedule.js";
import { TickJudge } from "./tick-judge.js";
import { TimeJudge } from "./time-judge.js";
import { WantedJudge } from "./wanted-judge.js";
import { type Scene, Watcher } from "./watcher.js";

/** What must hold at every step. Named after what is promised. */
export type Invariant =
  | "one holder"
  | "no more than there are permits"
  | "readers and writers keep apart"
  | "a hand-off lasts"
  | "a forged token lets nobody in"
  | "tokens grow from lock to lock"
  | "a tick runs once"
  | "a tick has begun when it runs"
  | "a tick runs until it succeeds"
  | "a hold lasts"
  | "a permit keeps to its rate"
  | "a guard commits for its holder alone"
  | "an own write is recognised"
  | "a call knows its own claims"
  | "a loss tells the truth"
  | "the row stands while it is held"
  | "expires never moves back"
  | "an ended uuid stays ended"
  | "a row forgets nothing"
  | "a purge comes after the lease"
  | "no write before the time is known"
  | "a stamp is near the time"
  | "a loss is told in time"
  | "a loss reaches its section"
  | "a loss tells the set"
  | "each section tells of its beginning and its end"
  | "each call tells once what came of it"
  | "a set is all or nothing"
  | "others get their turn"
  | "whoever waits gets in"
  | "a section knows whether others wait"
  | "renewals leave first"
  | "a late timer judges no reply"
  | "a release tells the truth"
  | "a free lock is obtained"
  | "nobody is told held of a free row"
  | "a busy lock is somebody's"
  | "first come, first served"
  | "nobody enters without a place"
  | "no claim on an old look"
  | "a live waiter keeps its place"
  | "a lock is not lost without a cause"
  | "a call ends as documented"
  | "a result is as young as asked for"
  | "an election keeps its word"
  | "a step after the work ends"
  | "a call ends in time"
  | "a drain lasts"
  | "a close ends in time"
  | "every promise settles"
  | "no timer is left"
  | "a wait leaves nothing behind";

export class Violation extends Error {
  override readonly name = "Violation";
  readonly invariant: Invariant;

  constructor(invariant: Invariant, detail: string) {
    super(`${invariant}: ${shortUuids(detail)}`);
    this.invariant = invariant;
  }
}

/** @throws {@link Violation} if something is wrong. */
export function check(invariant: Invariant, wrong: string | undefined): void {
  if (wrong !== undefined) throw new Violation(invariant, wrong);
}

/** A lock that its program holds, from when it gets it to when it gives it back. */
export interface Holding {
  /** The lock, by its key: see `asking`. */
  readonly name: string;
  readonly asking: Asking;
  /** For how long sections of its process may join the shared side without a look. */
  readonly joinMs: number;
  /** Whether its lock is fair. */
  readonly isFair: boolean;
  /** Whether its lock is renewed by itself. */
  readonly autoRenew: boolean;
  readonly uuid: string;
  /** Of this section: several may have one uuid. */
  readonly id: string;
  readonly lock: SimLock;
  /** For how long its lease may be passed on without a look; undefined where it is never passed on. */
  readonly handOverMs: number | undefined;
  readonly process: Process;
  readonly owner: string;
  /** When its call has asked for it; undefined for one of a set. */
  readonly askedAt: number | undefined;
  readonly takenAt: number;
  /** Whether the signal has told its program of a loss. Asking the lock would make it look, and so change the world. */
  told: boolean;
  /** Whether it has written through a guard. */
  isGuarded: boolean;
  /** Whether it was given back, and all was well. */
  isOver: boolean;
  /** Whether its machine stood still or its clock was set in the meantime: then a timer may rightly be late. */
  disturbed: boolean;
  /** When it was first seen to be over and untold of, since it was last disturbed. */
  untoldSince?: number | undefined;
  /** Whether it was taken when the faults were over: then nothing can take it away. */
  readonly calm: boolean;
}

/** The locks that a program got at once. */
export interface Holdings {
  readonly set: SimSet;
  readonly all: readonly Holding[];
  /** Those that were not given back alone. */
  readonly open: Set<Holding>;
  /** Whether the set's signal has told its program of a loss. */
  told: boolean;
}

/** A lock that stays taken after its section. */
interface Hold {
  readonly asking: Asking;
  readonly permits: readonly number[] | undefined;
  readonly until: number;
}

/** How long it may take a process that was shown its own claim on the row to act on it, while none of its requests waits for a slot. */
const RECOGNISED_WITHIN_MS = 500;
/** The same of several rows at once: they may all have to be read back, and one of the reads may hang until it is given up. */
const ALL_RECOGNISED_WITHIN_MS = 3_500;

/** A clock that runs fast by what the protocol allows, and a bit. */
const SLOWEST = 1 - 1e-3;

/** By how much the clocks of those who wait may lag behind the one that parked a row. */
const MOST_DOUBT_MS = 2_000;

/** How long after its end on the table's clock a loss may still be untold: the timer's own lag, and none of the margin. */
const TOLD_WITHIN_MS = 3;

/** How long after it woke a host may not know that it was suspended: it looks every second, and timers lag. */
const TOLD_AFTER_SUSPEND_MS = 1_050;

/** Watches the whole world, and throws a {@link Violation} at the first step that breaks a promise. */
export class Judge extends Watcher {
  readonly #queues: Readonly<Record<"mutex" | "permit" | "sides", QueueJudge>>;
  readonly #allQueues: readonly QueueJudge[];
  readonly time = new TimeJudge(this.scene);
  /** How many may hold a semaphore at once. */
  readonly #permits: number;
  readonly holdings = new Set<Holding>();
  /** Those whose section has ended, and whose call has not. */
  readonly afterWork = new Set<Holding>();
  /** The latest stamp that was ever sent under a uuid. */
  readonly #stamps = new Map<string, number>();
  /** The last fencing token that was handed out for a name. */
  readonly #tokens = new Map<string, bigint>();
  /** Until when locks stay taken that have been released. */
  readonly #holds = new Set<Hold>();
  /** The rows that were taken, by the uuids that they were taken and handed on with. */
  readonly #rows = new Map<string, { readonly at: Address; readonly process: Process }>();
  /** Claims that a refusal showed to their own process. */
  readonly #shown = new Map<string, { readonly process: Process; readonly since: number }>();
  /** The claims that were sent with others. */
  readonly #together = new Set<string>();
  /** The requests of each process that wait for a slot: also where it has many, throttling leaves it few. */
  readonly #inLine = new WeakMap<Process, ReadonlySet<unknown>>();
  /** Processes that never have more than a few slots. */
  readonly #narrow = new WeakSet<Process>();
  readonly phantoms = new Phantoms(this.scene, this.#narrow);
  readonly ownClaims = new OwnClaimJudge();
  readonly line = new LineJudge(this.scene);
  readonly handOver = new HandOverJudge(this.scene);
  readonly freeRows = new FreeRowJudge(this.scene);
  readonly #guards = new GuardJudge(this.scene);
  readonly handOffs = new HandOffJudge(this.scene);
  readonly companions = new Companions();
  readonly flights = new FlightJudge(this.scene);
  readonly ticks = new TickJudge();
  readonly #joins = new JoinJudge(this.scene);
  readonly #wanted: WantedJudge;
  /** Processes of which a further call has waited for a lock that told so. */
  readonly #unsure = new WeakSet<Process>();
  /** When the table last answered a process. */
  readonly #heardAt = new WeakMap<Process, number>();
  /** Those that told of it before their program had the lock. */
  readonly #wantedFirst = new Set<string>();
  readonly #sets = new Set<Holdings>();
  /** Losses that were told since the world was looked at last. */
  readonly #losses = new Set<string>();
  #blamed: Violation | undefined;
  #sections = 0;
  /** Those whose lock was taken away: they end as their lease stood, hold or not. */
  readonly #forced = new Set<string>();
  /** Those that their process has given back, so that it never stands behind them again. */
  readonly ended = new Set<string>();
  /** Those whose row was there, and then was not. */
  readonly #gone = new Set<string>();
  /** Those whose row another has taken before it was released: their hold is over, like that of a host that has crashed. */
  readonly #takenOver = new Set<string>();
  /** Those whose row a late copy made or brought back. */
  readonly revived = new Set<string>();

  /** By how much a server's clock is ahead. */
  readonly #aheadMs: number;

  /** For how long a permit is not handed out again; undefined without a rate. */
  readonly #perMs: number | undefined;
  /** The last hand-out of each permit that has a rate. */
  readonly #starts = new Map<string, { readonly at: number; readonly uuid: string }>();

  /** @param aheadMs by how much a server's clock is ahead; less than 0 if it is behind. */
  constructor(
    scene: Scene,
    {
      permits,
      aheadMs,
      perMs,
    }: { readonly permits: number; readonly aheadMs: number; readonly perMs?: number | undefined },
  ) {
    super(scene);
    this.#perMs = perMs;
    this.#aheadMs = Math.max(0, aheadMs);
    const behindMs = Math.max(0, -aheadMs);
    this.#permits = permits;
    this.#wanted = new WantedJudge(scene, behindMs, this.companions);
    this.#queues = {
      mutex: new QueueJudge(scene, MUTEX_PLACES),
      permit: new QueueJudge(scene, permitPlaces(permits)),
      sides: new QueueJudge(scene, SIDES_PLACES),
    };
    this.#allQueues = Object.values(this.#queues);
  }

  /** Whether a uuid is that of a row of the shared side. */
  isReader(uuid: string): boolean {
    const row = this.#rows.get(uuid);
    return row !== undefined && lockKindOf(row.at) === "shared";
  }

  /** Whether nobody who asks for this lock may get it now. @param weight how many permits. */
  isHeld(asking: Asking, weight = 1): boolean {
    const { kind, key, name, permits = this.#permits } = asking;
    const all = [...this.holdings].filter((holding) => holding.name === key);
    const handedOff = this.handOffs.waiting(asking);
    switch (kind) {
      case "mutex":
        return all.length > 0 || handedOff > 0 || this.#staysTaken(lockAt(name));
      case "permit":
        return this.#areTaken(permits - (weight - 1) - weightOf(all) - handedOff, name);
      case "exclusive":
        return all.length > 0 || this.#staysTaken(writerAt(name)) || this.#readersStay(name);
      case "shared":
        return all.some(({ asking: it }) => it.kind === "exclusive") || this.#isWriterThere(name);
      default:
        return kind satisfies never;
    }
  }

  /** Whether a row has no holder, and may be taken by nobody yet. */
  #staysTaken(at: Address): boolean {
    const row = this.scene.table.row(at);
    return row !== undefined && row.uuid === undefined && row.expires + MOST_DOUBT_MS > this.tableTime;
  }

  /** Whether so many permits of a semaphore have no holder, and may be taken by nobody yet. */
  #areTaken(permits: number, name: string): boolean {
    let left = permits;
    if (left <= 0) return true;
    for (const sort of this.scene.table.partition(name).keys()) {
      if (permitOf(sort) !== undefined && this.#staysTaken({ name, sort })) left -= 1;
      if (left === 0) return true;
    }
    return false;
  }

  #readersStay(name: string): boolean {
    const sorts = [...this.scene.table.partition(name).keys()];
    return sorts.some((sort) => lockKindOf({ sort }) === "shared" && this.#staysTaken({ name, sort }));
  }

  /** Whether a writer has its row, or waits behind it for the readers to leave. */
  #isWriterThere(name: string): boolean {
    const at = writerAt(name);
    if (this.#staysTaken(at)) return true;
    const { uuid } = this.scene.table.row(at) ?? {};
    const process = uuid === undefined ? undefined : this.#rows.get(uuid)?.process;
    return process !== undefined && !process.isGone && !this.ended.has(uuid ?? "");
  }

  /** While a process stands still it hears nothing, and the table is not silent for that. */
  standsStill(process: Process, until: number): void {
    this.#heardAt.set(process, until);
  }

  /** When a process last heard from the table, or could hear again; -Infinity if it never has. */
  heardAt(process: Process): number {
    return this.#heardAt.get(process) ?? Number.NEGATIVE_INFINITY;
  }

  /** A call for locks begins; the answer is called when it has ended. */
  calls(process: Process, names: readonly string[]): (missed?: Missed) => void {
    const ended = this.ownClaims.begins(process, names);
    return (missed) => check("a call knows its own claims", ended(missed));
  }

  /** Names a section: several may run on one uuid, also at the same time. */
  idOf(uuid: string): string {
    this.#sections += 1;
    return `${uuid}@${this.now}/${this.#sections}`;
  }

  /** @param resumed the hand-off that its section goes on with. */
  took(holding: Holding, resumed?: HandOff): void {
    check("a hand-off lasts", this.handOffs.took(holding, resumed));
    check("others get their turn", this.#joins.took(holding));
    const { kind } = holding.asking;
    const queue = this.#queues[kind === "mutex" || kind === "permit" ? kind : "sides"];
    check("first come, first served", queue.took(holding));
    check("first come, first served", this.line.took(holding.process, holding.name, holding.askedAt));
    this.holdings.add(holding);
    if (this.#wantedFirst.delete(holding.uuid)) this.toldWanted(holding.uuid);
    for (const uuid of this.companions.of(holding.uuid)) {
      this.#shown.delete(uuid);
      this.phantoms.settle(uuid);
      this.ownClaims.took(uuid);
    }
    this.#guards.took(holding);
    check("others get their turn", this.handOver.took(holding));
    const { fencingToken } = holding.lock;
    if (fencingToken !== undefined) this.#drew(holding.name, fencingToken);
    this.#ticked(holding);
    this.#checkHolds(holding);
    if (resumed === undefined) this.#started(holding);
    if (this.ended.has(holding.uuid)) throw new Violation("an ended uuid stays ended", `${holding.uuid} is held again`);
  }

  /** A program has got several locks at once. */
  tookSet(set: SimSet, all: readonly Holding[]): Holdings {
    const holdings: Holdings = { set, all, open: new Set(all), told: set.signal.aborted };
    set.signal.addEventListener("abort", () => {
      holdings.told = true;
    });
    this.#sets.add(holdings);
    return holdings;
  }

  gaveBackSet(holdings: Holdings): void {
    this.#sets.delete(holdings);
    for (const holding of holdings.open) this.gaveBack(holding);
  }

  /** The section is about to hand its lock off. */
  handsOff(holding: Holding, step: Step): HandOff {
    this.handOver.handsOff(holding.uuid);
    return this.handOffs.begins(holding, step);
  }

  /** A lock was released before its hold was over: nobody gets it until then. */
  holdsOn(holding: Holding, holdAtLeastMs: number): void {
    this.holdsUntil(holding, holding.takenAt + holdAtLeastMs * SLOWEST);
  }

  holdsUntil({ asking, uuid, lock }: Holding, until: number): void {
    const isOver = (one: string): boolean => this.#forced.has(one) || this.#takenOver.has(one);
    if (until <= this.now || this.companions.of(uuid).some(isOver)) return;
    this.count("locks held past their section");
    this.#holds.add({ asking, permits: lock.permits, until });
  }

  #checkHolds({ asking, uuid, lock }: Holding): void {
    for (const hold of this.#holds) {
      const left = hold.until - this.now;
      if (left <= 0) this.#holds.delete(hold);
      else if (hold.asking.key === asking.key && excludes(hold, { asking, permits: lock.permits }))
        throw new Violation("a hold lasts", `${uuid} was taken ${left} ms before its end`);
    }
  }

  /** Hand-outs of one permit are a period apart, so no window of a period has more of them than there are permits. */
  #started({ asking, uuid, lock }: Holding): void {
    if (asking.kind !== "permit" || this.#perMs === undefined) return;
    for (const permit of lock.permits ?? []) {
      const key = `${permit} of ${asking.key}`;
      const last = this.#starts.get(key);
      this.#starts.set(key, { at: this.now, uuid });
      this.count("permits of a rate handed out");
      const isForced = last !== undefined && this.companions.of(last.uuid).some((one) => this.#forced.has(one));
      const apartMs = this.now - (last?.at ?? Number.NEGATIVE_INFINITY);
      if (apartMs > this.#perMs * SLOWEST || isForced) continue;
      throw new Violation("a permit keeps to its rate", `${uuid} got permit ${key} ${apartMs} ms after ${last?.uuid}`);
    }
  }

  #ticked({ asking: { name }, lock: { tick, attempt } }: Holding): void {
    if (tick === undefined) return;
    // What is counted from 1 is a number of the program's own. The other ticks are times on the table's clock.
    if (tick > this.tableTime + this.#aheadMs)
      throw new Violation("a tick has begun when it runs", `${tick} of ${name} runs ${tick - this.tableTime} ms early`);
    check("a tick runs once", this.ticks.granted({ name, tick }, attempt !== undefined));
    this.count(attempt === undefined ? "ticks" : "ticks until success");
  }

  #drew(name: string, token: bigint): void {
    const last = this.#tokens.get(name);
    if (last !== undefined && token <= last)
      throw new Violation("tokens grow from lock to lock", `${last}, then ${token}`);
    this.#tokens.set(name, token);
    this.count("fencing tokens");
  }

  /** From here on its program no longer counts on it. */
  gaveBack(holding: Holding): void {
    this.holdings.delete(holding);
    this.handOver.ended(holding.uuid, holding);
  }

  /** Its release was given up, perhaps before any copy of it has left. */
  givenUp(uuid: string): void {
    this.handOver.gone(uuid);
    this.#shown.delete(uuid);
    // That was told: the row stays until its lease ends.
    this.phantoms.settle(uuid);
  }

  /** A reply has come to whoever waits for it. */
  heard(sender: Sender, message: Message, answer: Answer): void {
    const { process } = sender;
    this.#heardAt.set(process, this.now);
    for (const queue of this.#allQueues) queue.heard(sender, message, answer);
    this.handOver.heard(process, message, answer);
    this.phantoms.heard(process, message, answer);
    this.ownClaims.heard(process, message, answer);
    this.#joins.heard(sender, answer);
    this.#wanted.heard(process, answer);
    for (const uuid of shownBy(answer)) this.#shown.set(uuid, { process, since: this.now });
  }

  /**
   * The library has told of a loss. Nobody but its own process may take a row from its holder, but by force.
   * @param isWell whether the table has answered each renewal for a while.
   */
  told(uuid: string, reason: string, isWell: boolean): void {
    if (isWell && reason === "expired") this.#expiredThoughWell(uuid);
    this.#losses.add(uuid);
    this.handOver.lost(uuid);
    // After an unlock by force the row may be anybody's.
    const isForcedLoss = this.companions.of(uuid).some((one) => this.#forced.has(one));
    if ((reason !== "stolen" && reason !== "deleted") || isForcedLoss) return;
    this.blame("a loss tells the truth", `${uuid} was not ${reason}`);
  }

  #expiredThoughWell(uuid: string): void {
    const holding = [...this.holdings].find((one) => one.uuid === uuid);
    if (holding === undefined || holding.disturbed || !holding.autoRenew || this.#narrow.has(holding.process)) return;
    this.blame("a lock is not lost without a cause", `${uuid} has expired although the table was well again`);
  }

  /** A section has told that others wait for its lock. */
  toldWanted(uuid: string): void {
    const holding = [...this.holdings].find((one) => one.uuid === uuid);
    if (holding === undefined) this.#wantedFirst.add(uuid);
    const others = holding !== undefined && this.ownClaims.callsOf(holding.process, holding.name).length > 0;
    // Its turn is over then, for the sections after it as well.
    if (others) this.#unsure.add(holding.process);
    const isSure = holding !== undefined && !this.#unsure.has(holding.process);
    if (!isSure) return;
    const wrong = this.#wanted.told({ ...holding, handOverMs: holding.joinMs });
    this.blame("a section knows whether others wait", wrong);
  }

  /** A section looks whether others wait, where it has to know. */
  looksWhetherWanted({ uuid, takenAt, lock, told, disturbed }: Holding, handOverMs: number): void {
    // To ask the lock changes the world: only where the answer is known.
    if (told || !this.#wanted.expects({ uuid, takenAt, handOverMs, disturbed })) return;
    // Thrown, it would end the section, whose lock would then be released.
    if (lock.wanted === false && lock.held)
      this.blame("a section knows whether others wait", `${uuid} has found a mark, and is not wanted`);
  }

  /** A violation that was seen where nobody awaits it. */
  blame(invariant: Invariant, wrong: string | undefined): void {
    if (wrong !== undefined) this.#blamed ??= new Violation(invariant, wrong);
  }

  sent(sender: Sender, message: Message): void {
    const { process } = sender;
    this.companions.sent(message);
    check("no write before the time is known", this.time.early(sender, message));
    check("a stamp is near the time", this.time.late(sender, message));
    for (const queue of this.#allQueues) {
      const trespass = queue.sent(sender, message);
      if (trespass !== undefined) check(trespass.invariant, trespass.detail);
    }
    // Told to the world: the failure of a mark ends no wait.
    this.blame("others get their turn", this.handOver.sent(process, message));
    this.phantoms.sent(process, message);
    this.ownClaims.sent(process, message);
    this.freeRows.sent(process, message);
    this.handOffs.sent(message);
    this.#wanted.sent(process, message);
    for (const take of takesOf(message)) {
      if (message.kind === "writeAll") this.#together.add(take.uuid);
      this.#rows.set(take.uuid, { at: take.at, process });
      this.#stamped("take", take);
    }
    if (message.kind === "write") this.#wrote(process, message.write);
  }

  #wrote(process: Process, write: Write): void {
    if ("uuid" in write) this.#shown.delete(write.uuid);
    if ("from" in write) {
      // A lease that lapsed before it was handed out goes on under a new uuid.
      this.#shown.delete(write.from);
      this.#rows.set(write.uuid, { at: write.at, process });
    }
    if (write.kind === "renew" || "from" in write) this.#stamped(write.kind, write);
    if (write.kind === "transfer") this.#ends(write.from);
    // Whoever unlocks by force ends nothing of its own.
    if (write.kind === "vacate" && !isForced(write)) this.#ends(write.uuid);
  }

  /** From its release on, a uuid is nobody's: no section runs on it, and no write extends it. */
  #ends(uuid: string): void {
    this.ended.add(uuid);
    for (const holding of this.holdings) {
      // Nobody may await that release: what is thrown here would be a failed attempt at it.
      if (holding.uuid === uuid) this.blame("an ended uuid stays ended", `${uuid} is released while it is held`);
    }
  }

  #stamped(how: string, { uuid, expires }: { readonly uuid: string; readonly expires: number }): void {
    if (this.ended.has(uuid)) throw new Violation("an ended uuid stays ended", `a ${how} is sent for ${uuid}`);
    this.#stamps.set(uuid, Math.max(expires, this.#stamps.get(uuid) ?? 0));
  }

  arrived(arrival: Arrival): void {
    const { message, rows, duplicate } = arrival;
    for (const queue of this.#allQueues) check("a live waiter keeps its place", queue.arrived(arrival));
    if (arrival.answer?.kind === "transact") this.#transacts(arrival.answer, rows);
    // The value of a flight is nobody's lease: what counts of it is what the lock's row says.
    const changed = rows.filter(({ hasChanged, before, after }) => {
      return hasChanged && kindOf((after ?? before)?.sort ?? "") !== "result";
    });
    if (message.kind === "writeAll" && changed.length > 0 && changed.length < rows.length) {
      throw new Violation("a set is all or nothing", `only ${changed.map(({ after }) => after?.uuid)} of it are taken`);
    }
    if (changed.length === 0) return;
    for (const change of changed) this.freeRows.arrived(change);
    this.phantoms.arrived(message, changed, duplicate);
    if (message.kind === "write" && message.write.kind === "vacate" && isForced(message.write)) {
      this.#forced.add(message.write.uuid);
    }
    for (const change of changed) {
      this.handOffs.arrived(message, change);
      this.#wanted.arrived(message, change);
      this.flights.arrived(message, change);
      check("a tick runs until it succeeds", this.ticks.arrived(change));
      this.#joins.arrived(change);
      this.#changed(message, change, duplicate);
    }
  }

  #changed(message: Message, { before, after, item }: Change, duplicate: boolean): void {
    checkMemory(before, after);
    if (after !== undefined) checkPurge(after, item);
    if (before?.uuid !== undefined && before.uuid !== after?.uuid) {
      this.#gone.add(before.uuid);
      if (takesOf(message).length > 0) this.#takenOver.add(before.uuid);
    }
    if (after?.uuid === undefined) return;
    const { uuid } = after;
    if (before?.uuid === uuid && after.expires < before.expires) {
      const detail = `${message.kind} of ${uuid} from ${before.expires} to ${after.expires}`;
      throw new Violation("expires never moves back", detail);
    }
    if (duplicate && takesOf(message).length > 0) this.revived.add(uuid);
    // A late copy of a hand-off follows those of the take and of a renewal.
    const write = message.kind === "write" ? message.write : undefined;
    if (write?.kind === "transfer" && write.handOff !== undefined && this.revived.has(write.from))
      this.revived.add(uuid);
    // So may one of a reissue: nobody has the uuid that it gives.
    if (duplicate && write?.kind === "reissue" && this.revived.has(write.from)) this.revived.add(uuid);
    if (!this.#gone.has(uuid)) return;
    this.revived.add(uuid);
    if (before?.uuid !== uuid) this.count("rows that a late copy brought back");
    if (after.expires > (this.#stamps.get(uuid) ?? 0)) {
      throw new Violation("an ended uuid stays ended", `${uuid} lasts until ${after.expires}`);
    }
  }

  #transacts({ writes, outcome }: Extract<Answer, { kind: "transact" }>, [change]: readonly Change[]): void {
    if (outcome.kind === "unguarded") this.#guards.refused(writes);
    if (outcome.kind !== "committed") return;
    const isGone = this.#gone.has(writes.guard.uuid);
    check("a guard commits for its holder alone", this.#guards.committed(writes, change?.before, isGone));
  }

  /** @param waiting the requests of a process that wait for a slot. @param isNarrow whether it never has more than a few. */
  standsInLine(process: Process, waiting: ReadonlySet<unknown>, isNarrow: boolean): void {
    this.#inLine.set(process, waiting);
    if (isNarrow) this.#narrow.add(process);
  }

  /** Whether a process cannot act on what it was shown: it sleeps, or a request of its own waits for a slot. */
  #mustWait(process: Process): boolean {
    return process.asleep || (this.#inLine.get(process)?.size ?? 0) > 0;
  }

  /** Looks at the world between two steps. */
  readonly observe = (): void => {
    if (this.#blamed !== undefined) throw this.#blamed;
    for (const holding of this.holdings) {
      if (this.#losses.has(holding.uuid) && !holding.told)
        throw new Violation("a loss reaches its section", `${holding.id} has not heard that ${holding.uuid} is lost`);
      if (holding.process.crashed) this.holdings.delete(holding);
      else if (!holding.process.asleep && !holding.told) this.#check(holding);
    }
    this.#losses.clear();
    for (const holdings of this.#sets) this.#checkSet(holdings);
    const phantom = this.phantoms.oldest();
    if (phantom !== undefined) throw new Violation("a wait leaves nothing behind", `nobody looks for ${phantom}`);
    for (const [uuid, { process, since }] of this.#shown) {
      if (process.isGone) this.#shown.delete(uuid);
      else if (this.#mustWait(process)) this.#shown.set(uuid, { process, since: this.now });
      else if (this.now - since > (this.#together.has(uuid) ? ALL_RECOGNISED_WITHIN_MS : RECOGNISED_WITHIN_MS))
        throw new Violation("an own write is recognised", `${uuid} is on the row, and its process waits`);
    }
  };

  #rowOf({ asking: { kind, name } }: Holding, uuid: string): Address {
    return kind === "mutex" ? lockAt(name) : (this.#rows.get(uuid)?.at ?? { name, sort: "none" });
  }

  #checkSet(holdings: Holdings): void {
    const { all, open, told } = holdings;
    if (all[0]?.process.crashed) this.#sets.delete(holdings);
    const lost = [...open].find((holding) => holding.told);
    if (lost !== undefined && !told && !lost.process.asleep)
      throw new Violation("a loss tells the set", `${lost.uuid} is lost, and its set has not heard of it`);
  }

  #check(holding: Holding): void {
    const { name, asking, uuid, lock } = holding;
    const others: Holding[] = [];
    for (const other of this.holdings) {
      if (other !== holding && other.name === name && !other.process.crashed) others.push(other);
    }
    for (const other of others) {
      if (excludes(partOf(other), partOf(holding)) && other.lock.held && lock.held)
        throw new Violation(apart[asking.kind], `${uuid} and ${other.uuid} both hold ${name}`);
    }
    if (asking.kind === "permit" && weightOf([holding, ...others]) > this.#permits) {
      const held = [holding, ...others].filter((it) => it.lock.held);
      if (weightOf(held) > this.#permits)
        throw new Violation(apart.permit, `${held.map((it) => it.uuid)} hold ${this.#permits} permits of ${name}`);
    }
    // Where it was unlocked by force, nobody enters before the lease ends as it stood.
    // A look at `held` makes a lock that is over say so, and changes the world: only where something is odd.
    const rows = this.companions.of(uuid).map((one) => ({ one, row: this.scene.table.row(this.#rowOf(holding, one)) }));
    const { row } = rows.find(({ one, row: it }) => it?.uuid !== one) ?? {};
    const isWhole = rows.every(({ one, row: it }) => it?.uuid === one);
    const forced = row !== undefined && row.uuid === undefined && row.expires > 0;
    if (!isWhole && !forced && lock.held) {
      const there = row === undefined ? "there is none" : `it is ${row.uuid}'s`;
      throw new Violation("the row stands while it is held", `${uuid} holds ${name}, but its row: ${there}`);
    }
    const over = this.tableTime - lock.expires.getTime();
    if (over <= TOLD_WITHIN_MS || holding.told) return;
    holding.untoldSince ??= this.now;
    if (!holding.disturbed || this.now - holding.untoldSince > TOLD_AFTER_SUSPEND_MS)
      throw new Violation("a loss is told in time", `${uuid} was over ${over} ms ago`);
  }
}

/** What is said to be broken where two hold what excludes one another. */
const apart: Readonly<Record<Kind, Invariant>> = {
  mutex: "one holder",
  permit: "no more than there are permits",
  exclusive: "readers and writers keep apart",
  shared: "readers and writers keep apart",
};

type Part = Omit<Hold, "until">;

const partOf = ({ asking, lock }: Holding): Part => ({ asking, permits: lock.permits });

/** How many permits they have in all. */
const weightOf = (holdings: readonly Holding[]): number =>
  holdings.reduce((sum, { lock }) => sum + (lock.permits?.length ?? 1), 0);

/** Whether two of one lock exclude one another. */
function excludes(one: Part, other: Part): boolean {
  const { kind } = one.asking;
  if (kind === "permit") return overlap(one.permits, other.permits);
  return kind === "mutex" || kind === "exclusive" || other.asking.kind === "exclusive";
}

/** The claims of locks that their refusal shows to be on the rows already. */
function shownBy(answer: Answer): readonly string[] {
  if (answer.kind === "write" && answer.write.kind === "take") {
    const { write, outcome } = answer;
    // Either side of a shared mutex looks at the other first.
    const kind = lockKindOf(write.at);
    const actsAtOnce = kind === "mutex" || kind === "permit";
    return actsAtOnce && outcome.kind === "refused" && outcome.row?.uuid === write.uuid ? [write.uuid] : [];
  }
  if (answer.kind !== "writeAll" || answer.outcome.kind !== "refused") return [];
  const { rows } = answer.outcome;
  const uuids = answer.takes.map(({ uuid }) => uuid);
  return uuids.every((uuid, index) => rows[index]?.uuid === uuid) ? uuids : [];
}

/** A fencing token and a tick outlive whoever does not know of them. */
function checkMemory(before: Row | undefined, after: Row | undefined): void {
  for (const what of ["fence", "tick"] as const) {
    const [was, is] = [before?.[what], after?.[what]];
    if (was === undefined || (is !== undefined && is >= was)) continue;
    throw new Violation("a row forgets nothing", `${before?.name} had the ${what} ${was}, and now ${is ?? "none"}`);
  }
}

/** DynamoDB's TTL must end no lease, and no tick ever. */
function checkPurge({ name, expires, tick }: Row, item: Attributes | undefined): void {
  const purge = item?.purge;
  if (tick !== undefined && purge !== undefined)
    throw new Violation("a purge comes after the lease", `${name} with the tick ${tick} is purged at ${purge}`);
  if (tick === undefined && expires > 0 && !(typeof purge === "number" && purge * 1_000 > expires))
    throw new Violation("a purge comes after the lease", `${name} lasts until ${expires} and is purged at ${purge}`);
}
