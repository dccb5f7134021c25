import type { MutexOptions } from "../../../lib/options/mutex.js";
import { type Clock, stopwatches } from "../../../lib/time/clock.js";
import { tableClockOn } from "../../../lib/time/table-clock.js";
import { seededRandom } from "../../support/seeded-random.js";
import { type Closing, checkClose, startClose } from "./close-judge.js";
import type { Forgery } from "./forged-tokens.js";
import { attack, goOn } from "./hand-off-program.js";
import { type Judge, Violation } from "./invariants.js";
import { type Asking, askingFor, uuidOf } from "./locks.js";
import { Machine, type Process } from "./machine.js";
import type { Network } from "./network.js";
import { play } from "./program.js";
import type { Protocol, SimHost, SimLockable } from "./protocol.js";
import {
  type CloseMishap,
  FAIR_NAME,
  type HostPlan,
  MANY_SLOTS,
  MAX_SKEW_MS,
  type Mishap,
  type Schedule,
  type Step,
  simulatedName,
} from "./schedule.js";
import { type ForgedToken, type HandedOn, outcomeOf, type Stage } from "./section.js";
import { watchSlots } from "./slot-judge.js";
import { perMsIn } from "./steps.js";
import { entryOf, type Scene } from "./watcher.js";

/** How long a request that the faults swallowed may still be waited for. */
export const HUNG_MS = 3_000;

/** The longest pause before a request that has hung is sent again. */
export const PAUSED_MS = 1_500;

/** How often a process that lingers looks whether its sections have ended. */
const LOOK_EVERY_MS = 500;

/** What hosts share. */
export interface Surroundings extends Scene {
  readonly network: Network;
  readonly judge: Judge;
  readonly protocol: Protocol;
  readonly schedule: Schedule;
  readonly tell: (what: () => string) => void;
  readonly fail: (error: unknown) => void;
  /** Whether the release of this uuid was given up: then its lease ends by itself. */
  readonly gaveUp: (uuid: string) => boolean;
  /** Whether the process of this owner runs. */
  readonly isAlive: (owner: string) => boolean;
  /** A call that waits for locks without end; the answer says that it waits no more. */
  readonly wants: (locks: readonly Asking[]) => () => void;
  /** Sends a token on its way. */
  readonly handOn: (handed: HandedOn) => void;
}

/** One life of a host's process, with the library in it. */
export interface Life {
  readonly owner: string;
  readonly process: Process;
  readonly host: SimHost;
  /** Once its table is closed. */
  closing?: Closing;
}

interface Program {
  readonly steps: readonly Step[];
  next: number;
  done: boolean;
}

/** A machine with a process that runs programs, and what happens to both. */
export class SimulatedHost {
  readonly #world: Surroundings;
  readonly #plan: HostPlan;
  readonly #index: number;
  readonly #machine: Machine;
  readonly #programs: readonly Program[];
  #lives = 0;
  #life: Life | undefined;
  /** How far the wall clock has been set, which has a limit where hosts' clocks are trusted. */
  #ahead: number;

  constructor(world: Surroundings, index: number, plan: HostPlan) {
    this.#world = world;
    this.#index = index;
    this.#plan = plan;
    this.#ahead = this.#allowed(plan.machine.aheadMs);
    this.#machine = new Machine(
      world.scheduler,
      { ...plan.machine, aheadMs: this.#ahead },
      { epoch: world.epoch, seed: world.schedule.seed + index },
    );
    this.#programs = plan.programs.map((steps) => ({ steps, next: 0, done: false }));
    for (const mishap of plan.mishaps) {
      world.scheduler.wakeAt(Math.min(mishap.atMs, world.schedule.calmAtMs), () => this.#suffer(mishap));
    }
    this.start();
  }

  /** The process that runs, if one does. */
  get life(): Life | undefined {
    return this.#life;
  }

  /** Whether all programs have come to their end, or died. */
  get done(): boolean {
    return this.#programs.every(({ done }) => done);
  }

  start(): void {
    const { network, schedule, protocol, judge, coverage } = this.#world;
    const { seed } = schedule;
    this.#lives += 1;
    const owner = `${"ABCDEFGH"[this.#index]}${this.#lives}`;
    const process = this.#machine.start();
    const clock = clockOf(schedule.clock, process);
    let uuids = 0;
    const host = protocol({
      store: network.client(owner, process, clock, this.#plan.farMs),
      clock,
      owner,
      random: seededRandom(seed, "protocol", owner),
      togetherFrom: seededRandom(seed, "together", owner)() < 0.6 ? 1 : 8,
      uuid: () => {
        uuids += 1;
        return uuidOf(owner, uuids);
      },
      watch: (scheduler) => {
        const waiting = watchSlots(scheduler, this.#plan.slots, {
          count: (what) => coverage.count(what),
          unjust: (detail) => judge.blame("renewals leave first", `${owner}: ${detail}`),
          atMost: () => clock.atMost(),
          asks: () => {
            const askedAt = process.time.monotonic();
            return (send) => judge.handOver.sendAsAsked(askedAt, send);
          },
        });
        judge.standsInLine(process, waiting, this.#plan.slots < MANY_SLOTS);
      },
    });
    const life: Life = { owner, process, host };
    this.#life = life;
    for (const program of this.#programs) void this.#run(program, life);
  }

  async #run(program: Program, life: Life): Promise<void> {
    const stage = this.#stage(life);
    try {
      for (;;) {
        // Another process may go on with the rest, and is perhaps at the last step already.
        if (life.closing !== undefined) return;
        const step = program.steps[program.next];
        if (step === undefined) break;
        program.next += 1;
        await play(stage, step);
      }
    } catch (error) {
      this.#world.fail(error);
    }
    program.done = true;
  }

  /** A program makes each of its locks once. Other programs of its process have their own of the same name. */
  #stage(life: Life): Stage {
    const { owner, process, host } = life;
    const { scheduler, wants } = this.#world;
    const { calmAtMs, permits } = this.#world.schedule;
    const {
      ttlMs,
      takeover,
      maxHoldMs,
      autoRenew = true,
      fencing,
      handOverMs,
      releaseWithinMs,
      fair,
      poll,
    } = this.#plan;
    const options = { ttlMs, takeover, maxHoldMs, autoRenew, releaseWithinMs, ...(poll && { poll }) };
    const isFair = ({ name }: Asking): boolean => fair || name === FAIR_NAME;
    const optionsFor = (asking: Asking) => ({
      ...options,
      handOverMs,
      fair: isFair(asking),
      permits: asking.permits ?? permits,
      perMs: perMsIn(this.#world.schedule),
    });
    const lockables = new Map<string, SimLockable>();
    const lockable = (asking: Asking, fenced = fencing): SimLockable =>
      entryOf(lockables, `${asking.kind}, ${fenced}: ${asking.permits} ${asking.key}`, () =>
        lockableOf(host, asking, { ...optionsFor(asking), fencing: fenced }),
      );
    return {
      ...this.#world,
      process,
      owner,
      now: () => scheduler.now,
      fencing,
      autoRenew,
      joinMs: handOverMs,
      servedWithinMs: this.#plan.servedWithinMs,
      isFair,
      askingFor: (kind, name) => askingFor(kind, simulatedName(name)),
      handOverMs: (asking) => (asking.kind !== "mutex" || isFair(asking) ? undefined : handOverMs),
      lockable,
      holderOf: (asking) => holderOf(host, asking, optionsFor(asking)),
      lockAll: (names, how) => host.lockAll(names, options, how),
      drainEnds: () => life.closing?.drainEnds,
      awaitsClose: () => life.closing?.awaited,
      releaseWithinMs,
      calm: () => scheduler.now >= calmAtMs + HUNG_MS,
      calmInLine: () => scheduler.now >= calmAtMs + HUNG_MS + PAUSED_MS,
      wants: (names) => {
        const end = wants(names);
        process.onCrash(end);
        return end;
      },
    };
  }

  /** A queue delivers a token to whichever process runs here. @returns undefined where none does. */
  resume(handed: HandedOn): Promise<void> | undefined {
    return this.#deliver((stage) => goOn(stage, handed));
  }

  /** The same with a token that is none. */
  attack(how: Forgery, forged: ForgedToken): Promise<void> | undefined {
    return this.#deliver((stage) => attack(stage, how, forged));
  }

  #deliver(use: (stage: Stage) => Promise<void>): Promise<void> | undefined {
    const life = this.#life;
    if (life === undefined || life.closing !== undefined) return undefined;
    return new Promise((resolve) => {
      life.process.onCrash(resolve);
      life.process.deliver(() => {
        use(this.#stage(life))
          .catch((error: unknown) => this.#world.fail(error))
          .finally(resolve);
      });
    });
  }

  #suffer(mishap: Mishap): void {
    const { scheduler, schedule, coverage, tell } = this.#world;
    tell(() => `${"ABCDEFGH"[this.#index]} ${JSON.stringify(mishap)}`);
    coverage.count(`mishaps: ${mishap.kind}`);
    const left = Math.max(0, schedule.calmAtMs - scheduler.now);
    switch (mishap.kind) {
      case "crash":
        this.#crash();
        if (mishap.restarts) scheduler.wakeAt(scheduler.now + Math.min(mishap.forMs, left), () => this.#restart());
        else for (const program of this.#programs) program.done = true;
        break;
      case "step":
        this.#disturb();
        this.#stepWall(mishap.byMs);
        break;
      case "freeze":
      case "suspend":
        this.#disturb();
        if (this.#life && !this.#machine.asleep)
          this.#world.judge.standsStill(this.#life.process, scheduler.now + Math.min(mishap.forMs, left));
        this.#machine.sleep(Math.min(mishap.forMs, left), mishap.kind);
        break;
      case "close":
        // A process that stands still hears of it when it wakes.
        this.#life?.process.deliver(() => void this.#close(mishap).catch((error) => this.#world.fail(error)));
        break;
      default:
        mishap satisfies never;
    }
  }

  #crash(): void {
    this.#machine.crash();
    this.#life = undefined;
  }

  async #close({ atMs, drainMs, lingers, restarts }: CloseMishap): Promise<void> {
    const life = this.#life;
    if (life === undefined || life.closing !== undefined) return;
    const { scheduler, coverage, judge } = this.#world;
    const startedAt = scheduler.now;
    const closed = outcomeOf(life.host.close(drainMs));
    // In half of the schedules, by a number that decides nothing else, sections await the close of their own process.
    life.closing = startClose(drainMs, startedAt, atMs % 2 === 1 ? closed : undefined);
    const { error: outcome } = await closed;
    if (this.#life !== life) return;
    const sections = [...judge.holdings].filter(({ process }) => process === life.process);
    const releaseWithinMs = this.#plan.releaseWithinMs;
    life.process.close();
    checkClose(life.closing, { now: scheduler.now, releaseWithinMs, outcome, sections, coverage });
    if (lingers) await this.#sectionsEnded(life);
    if (this.#life !== life) return;
    life.process.crash();
    this.#life = undefined;
    if (restarts) this.#restart();
    else for (const program of this.#programs) program.done = true;
  }

  /** Its sections have ended, and had a while to release their locks. */
  async #sectionsEnded({ process }: Life): Promise<void> {
    const isRunning = () => [...this.#world.judge.holdings].some((holding) => holding.process === process);
    for (let quietMs = 0; quietMs < 2 * LOOK_EVERY_MS; quietMs = isRunning() ? 0 : quietMs + LOOK_EVERY_MS) {
      await process.timersOfClock.sleep(LOOK_EVERY_MS);
    }
  }

  #restart(): void {
    if (this.#life === undefined && !this.done) this.start();
  }

  #stepWall(byMs: number): void {
    const ahead = this.#allowed(this.#ahead + byMs);
    if (this.#machine.stepWall(ahead - this.#ahead)) this.#ahead = ahead;
  }

  /** A clock that is trusted is right within the stated skew, drift included. */
  #allowed(aheadMs: number): number {
    const most = this.#world.schedule.clock === "system" ? MAX_SKEW_MS * 0.8 : Number.POSITIVE_INFINITY;
    return Math.min(most, Math.max(-most, aheadMs));
  }

  #disturb(): void {
    if (this.#life?.closing !== undefined) this.#life.closing.disturbed = true;
    const { afterWork, holdings } = this.#world.judge;
    for (const holding of [...holdings, ...afterWork]) {
      if (holding.process === this.#life?.process) [holding.disturbed, holding.untoldSince] = [true, undefined];
    }
  }
}

/** The library's own clocks, on a simulated machine. */
function clockOf(kind: "table" | "system", { time, timersOfClock }: Process): Clock {
  if (kind === "table") return tableClockOn({ time, ...timersOfClock });
  return {
    ...stopwatches(time),
    ...timersOfClock,
    wall: () => ({ earliest: time.wall() - MAX_SKEW_MS, latest: time.wall() + MAX_SKEW_MS }),
  };
}

type LockableOptions = MutexOptions & { readonly permits: number; readonly perMs: number | undefined };

function lockableOf(
  host: SimHost,
  asking: Asking,
  { fencing, permits, perMs, ...options }: LockableOptions,
): SimLockable {
  const { kind, name } = asking;
  if (kind === "mutex") return host.mutex(name, { ...options, fencing });
  return kind === "permit"
    ? host.semaphore(name, { ...options, permits, perMs })
    : host.sharedMutex(name, options)[kind];
}

async function holderOf(host: SimHost, { kind, name }: Asking, { permits, perMs, ...options }: LockableOptions) {
  if (kind === "mutex") {
    const held = host.mutex(name, options);
    return { held, holder: (await held.inspect()) ?? undefined };
  }
  if (kind === "permit") {
    const held = host.semaphore(name, { ...options, permits, perMs });
    return { held, holder: (await held.inspect()).holders[0] };
  }
  const held = host.sharedMutex(name, options);
  const { exclusive, shared } = await held.inspect();
  return { held, holder: exclusive ?? shared[0] };
}

/** Fails unless the process has nothing left to do. */
export function checkIdle({ process }: Life): void {
  if (process.timers > 0) throw new Violation("no timer is left", `${process.timers} timers are set`);
}
