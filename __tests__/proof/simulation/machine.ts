import type { Clock, HostTime } from "../../../lib/time/clock.js";
import { MAX_TIMER_MS, sleepUntilRung } from "../../../lib/time/clock.js";
import { type Random, seededRandom } from "../../support/seeded-random.js";
import type { Scheduler } from "./scheduler.js";

/** A simulated host's clocks: wrong, drifting, jumping, but for their rates within what the protocol allows. */
export interface MachinePlan {
  /** How far the wall clock is ahead of the table's at the start. */
  readonly aheadMs: number;
  /** How much faster the clocks run than the table's, in parts per million: at most 500 either way. */
  readonly monotonicPpm: number;
  readonly wallPpm: number;
}

/** How early and how late a timer of Node's may ring on a machine that has nothing else to do. */
const EARLY_MS = 0.9;
const LATE_MS = 2;

/**
 * A host: two clocks, and moments at which it stands still. What happens to a host that stands still, its timers
 * and what comes from the network, happens late, when it wakes.
 */
export class Machine {
  readonly #scheduler: Scheduler;
  readonly #epoch: number;
  readonly #plan: MachinePlan;
  readonly #random: Random;
  readonly #processes = new Set<Process>();
  #steppedMs = 0;
  #forwardMs = 0;
  #suspendedMs = 0;
  #suspendedAt: number | undefined;
  #asleep = false;
  /** What no process on this machine can have noticed yet. */
  #unread: "step back" | "suspend" | undefined;

  constructor(scheduler: Scheduler, plan: MachinePlan, options: { readonly epoch: number; readonly seed: number }) {
    this.#scheduler = scheduler;
    this.#plan = plan;
    this.#epoch = options.epoch;
    this.#random = seededRandom(options.seed, "machine");
  }

  /** Whether it stands still. */
  get asleep(): boolean {
    return this.#asleep;
  }

  /** By how much its wall clock was ever set forward, which no process can tell from a suspend. */
  get forwardMs(): number {
    return this.#forwardMs;
  }

  readonly time: HostTime = {
    monotonic: () => this.#running() * (1 + this.#plan.monotonicPpm * 1e-6),
    wall: () => {
      // A judge may look at a process that stands still: what follows of the suspend is still unread.
      if (!this.#asleep) this.#unread = undefined;
      const gone = this.#scheduler.now * (1 + this.#plan.wallPpm * 1e-6);
      return Math.floor(this.#epoch + this.#plan.aheadMs + this.#steppedMs + gone);
    },
  };

  /** A process on this machine: its timers and what it hears die with it. */
  start(): Process {
    const process = new Process(this, this.#scheduler, this.#random);
    this.#processes.add(process);
    return process;
  }

  crash(): void {
    for (const process of this.#processes) process.crash();
    this.#processes.clear();
  }

  /**
   * Somebody sets the wall clock. Not back where that would hide a suspend from a process that has not looked at its
   * clocks in between: nothing could know of it, and the protocol does not claim to.
   *
   * @returns whether it was set.
   */
  stepWall(byMs: number): boolean {
    if (byMs < 0 && (this.#asleep || this.#unread === "suspend")) return false;
    if (byMs < 0) this.#unread = "step back";
    this.#steppedMs += byMs;
    this.#forwardMs += Math.max(0, byMs);
    return true;
  }

  /** Stands still for a while; with `suspend` the monotonic clock does too, as Linux has it. */
  sleep(ms: number, how: "freeze" | "suspend"): void {
    if (this.#asleep) return;
    this.#asleep = true;
    if (how === "suspend" && this.#unread !== "step back") {
      this.#suspendedAt = this.#scheduler.now;
      this.#unread = "suspend";
    }
    // A step of its own while it still stands still: where nothing else happens meanwhile, judges see it by that.
    this.#scheduler.at(this.#scheduler.now + ms, () => undefined);
    this.#scheduler.at(this.#scheduler.now + ms, () => this.#wake());
  }

  #wake(): void {
    if (this.#suspendedAt !== undefined) this.#suspendedMs += this.#scheduler.now - this.#suspendedAt;
    this.#suspendedAt = undefined;
    this.#asleep = false;
    for (const process of this.#processes) process.catchUp();
  }

  /** For how long the monotonic clock has run, in true milliseconds. */
  #running(): number {
    return (this.#suspendedAt ?? this.#scheduler.now) - this.#suspendedMs;
  }

  /** When the monotonic clock will show this, if nothing gets in between. */
  dueAt(monotonic: number): number {
    const ms = (monotonic - this.time.monotonic()) / (1 + this.#plan.monotonicPpm * 1e-6);
    return this.#scheduler.now + Math.max(0, ms);
  }
}

/** A timer of a process. */
interface Timer {
  /** What the monotonic clock shows when it is due. */
  readonly due: number;
  readonly ring: () => void;
  disarm: () => void;
}

/** One life of a program on a machine. */
export class Process {
  readonly #machine: Machine;
  readonly #scheduler: Scheduler;
  readonly #random: Random;
  readonly #timers = new Set<Timer>();
  readonly #polls = new Set<object>();
  readonly #obituaries: (() => void)[] = [];
  #backlog: (() => void)[] = [];
  #crashed = false;
  #closed = false;

  constructor(machine: Machine, scheduler: Scheduler, random: Random) {
    this.#machine = machine;
    this.#scheduler = scheduler;
    this.#random = random;
  }

  get crashed(): boolean {
    return this.#crashed;
  }

  /** Whether nothing of it looks after what it has left behind any more. */
  get isGone(): boolean {
    return this.#crashed || this.#closed;
  }

  get asleep(): boolean {
    return this.#machine.asleep;
  }

  /** By how much the machine's wall clock was ever set forward. */
  get forwardMs(): number {
    return this.#machine.forwardMs;
  }

  /** How many timers are set, or have rung and wait for a poll of the sockets. */
  get timers(): number {
    return this.#timers.size + this.#polls.size;
  }

  get time(): HostTime {
    return this.#machine.time;
  }

  crash(): void {
    this.#crashed = true;
    this.#timers.clear();
    this.#polls.clear();
    this.#backlog = [];
    for (const tell of this.#obituaries) tell();
  }

  /** Its table is closed, and the time for that is over. */
  close(): void {
    this.#closed = true;
  }

  /** For the world's own books: nothing of the process runs any more. */
  onCrash(tell: () => void): void {
    this.#obituaries.push(tell);
  }

  /** What arrives from outside: at once, or late if the machine stands still, or never. */
  deliver(act: () => void): void {
    if (this.#crashed) return;
    if (this.#machine.asleep) this.#backlog.push(act);
    else act();
  }

  /** The backlog, as separate events: first the timers or first the network, in the order in which they were due. */
  catchUp(): void {
    const backlog = this.#random() < 0.5 ? this.#backlog : this.#backlog.reverse();
    this.#backlog = [];
    for (const act of backlog) {
      this.#scheduler.wakeAt(this.#scheduler.now, () => {
        // It may have fallen asleep again, or crashed.
        this.deliver(act);
      });
    }
  }

  /** What the library may sleep on. */
  readonly timersOfClock: Pick<Clock, "sleep" | "alarm" | "afterPoll"> = {
    alarm: (ms, ring) => this.after(ms, ring),
    // Behind everything that a machine finds when it wakes.
    afterPoll: (act) => {
      const poll = {};
      this.#polls.add(poll);
      const end = (): boolean => this.#polls.delete(poll);
      const cancel = this.#scheduler.wakeAt(this.#scheduler.now, () => this.deliver(() => end() && act()));
      return () => {
        end();
        cancel();
      };
    },
    sleep: (ms, signal) => sleepUntilRung((wake) => this.after(ms, wake), signal),
  };

  /** Calls `ring` when the machine's monotonic clock has gone on by so much: somewhat later, much later if it sleeps. */
  after(ms: number, ring: () => void): () => void {
    if (this.#crashed) return () => undefined;
    const due = this.#machine.time.monotonic() + Math.min(Math.max(0, ms), MAX_TIMER_MS);
    const timer: Timer = { due, ring, disarm: () => undefined };
    this.#timers.add(timer);
    this.#arm(timer);
    return () => {
      this.#timers.delete(timer);
      timer.disarm();
    };
  }

  #arm(timer: Timer): void {
    const lag = this.#random() * (EARLY_MS + LATE_MS) - EARLY_MS;
    timer.disarm = this.#scheduler.wakeAt(this.#machine.dueAt(timer.due) + lag, () => {
      if (!this.#timers.has(timer)) return;
      // A suspend stops the clock that it is due on: then the rest of it is still to come.
      const isDue = this.#machine.time.monotonic() >= timer.due - 1;
      this.deliver(() => {
        if (!isDue) this.#arm(timer);
        else if (this.#timers.delete(timer)) timer.ring();
      });
    });
  }
}
