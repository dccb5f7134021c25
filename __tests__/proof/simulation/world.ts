import { isDeepStrictEqual } from "node:util";
import { acquisitionOf, kindOf as kindOfRow, ticketOf } from "../../../lib/protocol/addresses.js";
import { markInNumber } from "../../../lib/protocol/mark.js";
import type { Row } from "../../../lib/protocol/row.js";
import type { Answer } from "../../support/message.js";
import { CallJudge } from "./call-judge.js";
import { Coverage } from "./coverage.js";
import { EventJudge } from "./event-judge.js";
import { editedOf, foreignOf, forgedOf, rowOfToken } from "./forged-tokens.js";
import { Judge, Violation } from "./invariants.js";
import { type Asking, type Kind, lockOf, lockOfQueue, shortUuids, uuidStart } from "./locks.js";
import { isForced } from "./message.js";
import { type Arrival, Network } from "./network.js";
import { countArrival, countDiagnostics } from "./observers.js";
import { ParsedTable } from "./parsed-table.js";
import type { Protocol } from "./protocol.js";
import { rivalsIn } from "./rivals.js";
import { type Attack, type Delivery, QUIET_HOST, type Schedule, type Step, simulatedName } from "./schedule.js";
import { Scheduler } from "./scheduler.js";
import type { HandedOn } from "./section.js";
import { checkIdle, HUNG_MS, type Life, PAUSED_MS, SimulatedHost, type Surroundings } from "./simulated-host.js";
import { perMsIn, probeOf, renewsIn, stepIn } from "./steps.js";

/** The table's clock at 0 of virtual time. */
const EPOCH = Date.UTC(2026, 10, 20, 12) + 321;

/** How long after the faults all programs must have ended, pauses aside: far more than their sections and waits add up to. */
const SETTLE_MS = 300_000;

/** How long background work may go on after the last program: an uncertain put is looked for that long. */
const BACKGROUND_MS = 15_000;

/** What a free lock may take to be obtained besides the longest ttl: the longest poll, round trips, clocks' rates. */
const OBTAIN_WITHIN_MS = 1_000;

/** How long before the end of a lease a table has to be well again to keep the lock: a pause is half of that at most. */
const WELL_AGAIN_MS = 300;

/** Longer than any lease, and any doubt about it. */
const NO_LEASE_MS = 60_000;

/** How many tokens a restore takes back. */
const LOST_TOKENS = 5;

/** How often the world is looked at when nothing happens in it, and how often when it has been calm for a while. */
const LOOK_EVERY_MS = 1_000;
const LOOK_LATER_EVERY_MS = 10_000;

/** How much of the trace a violation shows. */
const TRACE_LINES = 200;

export interface Run {
  readonly coverage: Coverage;
  readonly steps: number;
  /** Everything that happened, line by line, equal for equal schedules; empty unless it was asked for. */
  readonly trace: readonly string[];
}

/**
 * Plays one schedule from beginning to end. Without `trace`, errors tell no stack: most of them are faults of the network
 * that the library gets over, and a run makes hundreds.
 *
 * @throws {@link Violation}
 */
export async function simulate(
  schedule: Schedule,
  protocol: Protocol,
  options: { trace?: boolean } = {},
): Promise<Run> {
  const { stackTraceLimit } = Error;
  if (!options.trace) Error.stackTraceLimit = 0;
  const world = new World(schedule, protocol, options.trace ?? false);
  const endDiagnostics = countDiagnostics(world.coverage, (name, message) => world.told(name, message));
  try {
    await world.play();
  } catch (error) {
    if (error instanceof Error && options.trace) error.message += `\n${world.trace.slice(-TRACE_LINES).join("\n")}`;
    throw error;
  } finally {
    endDiagnostics();
    Error.stackTraceLimit = stackTraceLimit;
  }
  return { coverage: world.coverage, steps: world.scheduler.steps, trace: world.trace };
}

interface Want {
  readonly locks: readonly Asking[];
  /** Since when nobody has any of them, and for how long that may be: the most that it was since then. */
  free: { readonly since: number; longestMs: number } | undefined;
}

class World {
  readonly coverage = new Coverage();
  readonly scheduler = new Scheduler();
  readonly trace: string[] = [];
  readonly #releasesGivenUp = new Set<string>();
  /** The uuid that a reissue has replaced: a release under that one, or under the one that it gives, may be given up. */
  readonly #reissuedFrom = new Map<string, string>();
  /** The claims that a set's claim came with. */
  readonly #companions = new Map<string, readonly string[]>();
  readonly #schedule: Schedule;
  /** For how long a row can have to be watched: a lease, or the rest of a hold. */
  readonly #longestTtlMs: number;
  readonly #tracing: boolean;
  readonly #table = new ParsedTable();
  readonly #judge: Judge;
  readonly #events = new EventJudge((uuid) => this.#judge.isReader(uuid));
  readonly #calls = new CallJudge();
  readonly #surroundings: Surroundings;
  readonly #hosts: SimulatedHost[];
  readonly #network: Network;
  /** Patient calls: the names that each waits for, and since when nobody holds any of them. */
  readonly #wants = new Set<Want>();
  #failure: { readonly error: unknown } | undefined;
  /** The longest need of a mark: a process that has had its turn stands back for that, whoever has written it. */
  #longestNeedMs = 0;
  /** How many tokens are on their way, or being used. */
  #tokens = 0;
  /** All that there ever were, in order. */
  readonly #handed: HandedOn[] = [];

  constructor(schedule: Schedule, protocol: Protocol, tracing: boolean) {
    this.#schedule = schedule;
    this.#tracing = tracing;
    const holds = schedule.hosts.flatMap(({ programs }) =>
      programs
        .flat()
        .flatMap(({ holdAtLeastMs, kind, withinMs }) => [holdAtLeastMs, kind === "handOff" ? withinMs : 0]),
    );
    this.#longestTtlMs = Math.max(...schedule.hosts.map(({ ttlMs }) => ttlMs), ...holds);
    const scene = { scheduler: this.scheduler, table: this.#table, coverage: this.coverage, epoch: EPOCH };
    const aheadMs = schedule.network.wrongDates?.aheadMs ?? 0;
    this.#judge = new Judge(scene, { permits: schedule.permits, aheadMs, perMs: perMsIn(schedule) });
    this.#network = new Network(scene, schedule, {
      sent: (sender, message) => this.#judge.sent(sender, message),
      arrived: (arrival) => this.#arrived(arrival),
      heard: (sender, message, answer) => this.#judge.heard(sender, message, answer),
      learned: (sender, request, aheadMs) => this.#judge.time.learned(sender, request, aheadMs),
      turnedDown: (message) => this.#judge.phantoms.turnedDown(message),
      givenUpUnread: ({ owner }, { kind }) =>
        this.#judge.blame("a late timer judges no reply", `${owner} has given up a ${kind} whose reply had come`),
    });
    this.#surroundings = {
      ...scene,
      protocol,
      schedule,
      network: this.#network,
      judge: this.#judge,
      tell: (what) => this.#tell(what),
      fail: (error) => {
        this.#failure ??= { error };
      },
      // Of several permits, one whose release was given up is free when its lease ends.
      gaveUp: (uuid) => this.#judge.companions.of(uuid).some((one) => this.#releasesGivenUp.has(one)),
      isAlive: (owner) => this.#lives.some((life) => life.owner === owner),
      wants: (locks) => this.#want(locks),
      handOn: (handed) => this.#handOn(handed),
    };
    this.#hosts = schedule.hosts.map((plan, index) => {
      const programs = plan.programs.map((steps) => steps.map((step) => stepIn(schedule, step)));
      return new SimulatedHost(this.#surroundings, index, { autoRenew: renewsIn(schedule, index), ...plan, programs });
    });
  }

  async play(): Promise<void> {
    const { calmAtMs } = this.#schedule;
    this.#lookAround();
    await this.#until(calmAtMs, () => false, "nothing");
    const settleMs = SETTLE_MS + this.#longestPausesMs;
    await this.#until(calmAtMs + settleMs, () => this.#isDone, "programs under way");
    await this.#background();
    this.#checkLeftovers();
    await this.#restore();
    await this.#probe();
    await this.#background();
    await this.#rivalry();
    await this.#close();
  }

  /** Something on a diagnostics channel. */
  told(name: string, message: object): void {
    const section = message as { readonly uuid?: string };
    this.#judge.blame("each section tells of its beginning and its end", this.#events.wrong(name, section));
    this.#judge.blame("each call tells once what came of it", this.#calls.wrong(name, message));
    if (name === "dynamutex:lost") {
      const { uuid, reason } = message as { readonly uuid: string; readonly reason: string };
      const isWell = this.scheduler.now >= this.#schedule.calmAtMs + WELL_AGAIN_MS && this.#network.isHonest;
      this.#judge.told(uuid, reason, isWell);
    }
    if (name === "dynamutex:wanted" && section.uuid !== undefined) this.#judge.toldWanted(section.uuid);
    if (name === "dynamutex:release-failed" && section.uuid !== undefined) this.#givenUp(section.uuid);
    this.#tell(() => {
      // The numbers of calls are those of the process that plays, and differ each time.
      const { cause, call: _, ...rest } = message as { readonly cause?: unknown; readonly call?: number };
      return `${name} ${textOf(rest)}${cause === undefined ? "" : ` ${cause}`}`;
    });
  }

  /** Where a set was not handed out, its first claim speaks for all of them. */
  #givenUp(uuid: string): void {
    const others = this.#judge.ownClaims.wasHeld(uuid) ? [] : (this.#companions.get(uuid) ?? []);
    for (const one of [uuid, ...others]) {
      this.#releasesGivenUp.add(one);
      this.#judge.givenUp(one);
    }
  }

  get #lives(): Life[] {
    return this.#hosts.flatMap(({ life }) => life ?? []);
  }

  /** For how long a program pauses between its steps, all in all. */
  get #longestPausesMs(): number {
    const programs = this.#schedule.hosts.flatMap((host) => host.programs);
    return Math.max(0, ...programs.map((steps) => steps.reduce((sum, { pauseMs }) => sum + pauseMs, 0)));
  }

  get #isDone(): boolean {
    return this.#tokens === 0 && this.#hosts.every(({ done }) => done);
  }

  /** A queue delivers the token as its step says, and others try without it. */
  #handOn(handed: HandedOn): void {
    this.#handed.push(handed);
    const { deliveries, attacks } = handed.step;
    for (const delivery of deliveries) this.#deliver(delivery, (host) => host?.resume(handed));
    for (const attack of attacks) this.#deliver(attack, (host) => this.#attack(host, handed, attack));
  }

  #deliver({ host, afterMs }: Delivery, use: (host: SimulatedHost | undefined) => Promise<void> | undefined): void {
    this.#tokens += 1;
    const arrived = (): void => {
      this.#tokens -= 1;
    };
    this.scheduler.wakeAt(this.scheduler.now + afterMs, () => {
      const used = use(this.#hosts[host % this.#hosts.length]);
      if (used === undefined) arrived();
      else void used.then(arrived);
    });
  }

  #attack(host: SimulatedHost | undefined, handed: HandedOn, { how, afterMs }: Attack): Promise<void> | undefined {
    const { token, asking, fencing } = handed;
    const at = rowOfToken(token);
    const others = this.#handed.filter((other) => other !== handed);
    const isSame = (other: HandedOn): boolean => isDeepStrictEqual(rowOfToken(other.token), at);
    const attack = (forged: string) => host?.attack(how, { token: forged, asking, fencing });
    switch (how) {
      case "seen": {
        const uuid = this.#table.row(at)?.uuid;
        return uuid === undefined ? undefined : attack(forgedOf(token, uuid));
      }
      case "foreign": {
        const other = others.findLast((one) => !isSame(one));
        return other && attack(foreignOf(token, other.token));
      }
      case "edited":
        return attack(editedOf(token, afterMs));
      case "old": {
        // It is whole: the judge of its hand-off knows whether it may still count.
        const before = this.#handed.slice(0, this.#handed.indexOf(handed)).findLast(isSame);
        if (before === undefined) return undefined;
        this.coverage.count("attacks: old");
        return host?.resume(before);
      }
      default:
        return how satisfies never;
    }
  }

  /** Goes on until `met`, or until the time; the first failure of a program ends it. */
  async #until(time: number, met: () => boolean, what: string): Promise<void> {
    const isMet = await this.scheduler.run(time, () => this.#failure !== undefined || met(), this.#observe);
    if (this.#failure !== undefined) throw this.#failure.error;
    if (!isMet && what !== "nothing") throw new Violation("every promise settles", `${what} at ${time}`);
  }

  #lookAround(): void {
    if (this.#isDone) return;
    const { now } = this.scheduler;
    const everyMs = now < this.#schedule.calmAtMs + SETTLE_MS ? LOOK_EVERY_MS : LOOK_LATER_EVERY_MS;
    this.scheduler.at(now + everyMs, () => this.#lookAround());
  }

  /** What runs in the background comes to an end by itself, and leaves no timer. */
  async #background(): Promise<void> {
    const idle = (): boolean =>
      this.#network.underWay === 0 && this.#lives.every(({ process }) => process.timers === 0);
    await this.scheduler.run(this.scheduler.now + BACKGROUND_MS, idle, this.#observe);
    for (const life of this.#lives) checkIdle(life);
  }

  /** Every row that is left belongs to somebody who could not remove it, or is over. */
  #checkLeftovers(): void {
    const owners = new Set(this.#lives.map(({ owner }) => owner));
    for (const row of this.#table.rows) {
      if (row.uuid === undefined || kindOfRow(row.sort) === "result") continue;
      const cause = !owners.has(row.owner)
        ? "of crashed processes"
        : this.#judge.revived.has(row.uuid)
          ? "brought back by late copies"
          : this.#isReleaseGivenUp({ ...row, uuid: row.uuid })
            ? "whose release was given up"
            : row.expires - this.#mostAheadMs < EPOCH + this.scheduler.now
              ? "that arrived after they were looked for"
              : this.#judge.handOffs.isToken(row.uuid)
                ? "that nobody has resumed"
                : undefined;
      if (cause === undefined) throw new Violation("a wait leaves nothing behind", `${row.uuid} until ${row.expires}`);
      const what =
        ticketOf(row.sort) !== undefined ? "places" : kindOfRow(row.sort) === "lock" ? "rows" : "further rows";
      this.coverage.count(`${what} left at the end ${cause}`);
    }
  }

  /** Of permits that were taken together, one release speaks for all. */
  #isReleaseGivenUp(row: Row & { readonly uuid: string }): boolean {
    const { uuid } = row;
    const told = [uuid, acquisitionOf(row), this.#reissuedFrom.get(uuid) ?? uuid];
    return told.some((one) => this.#releasesGivenUp.has(one));
  }

  /** By how much a stamp may be too late because a server's clock was. */
  get #mostAheadMs(): number {
    return Math.max(0, this.#schedule.network.wrongDates?.aheadMs ?? 0);
  }

  /** Nobody waits any more. Where there is a permit for each, one whose lease seemed to run is let be. */
  #deadWaiters(since: number): readonly Row[] {
    const places = this.#table.rows.filter(({ sort }) => ticketOf(sort) !== undefined);
    return places.filter((row) => lockOfQueue(row).kind !== "permit" || row.expires < since - NO_LEASE_MS);
  }

  /**
   * The table was restored from a backup: the tokens are those of a while ago. A token may be as late as a server's clock was wrong, or
   * the bounds were wide: a restore takes longer than that.
   */
  async #restore(): Promise<void> {
    const fenced = this.#table.rows.filter(({ fence, uuid }) => fence !== undefined && uuid === undefined);
    if (fenced.length === 0 || this.#schedule.network.wrongDates !== undefined) return;
    await this.#until(this.scheduler.now + NO_LEASE_MS, () => false, "nothing");
    for (const { name, sort, fence } of fenced) {
      this.#table.plant({ name, sort }, { ...this.#table.item({ name, sort }), fence: Number(fence) - LOST_TOKENS });
      this.coverage.count("tokens that a restore took back");
    }
  }

  /** Whatever is left of a lock, a newcomer gets it. */
  async #probe(): Promise<void> {
    const startedAt = EPOCH + this.scheduler.now;
    const steps = this.#table.names.flatMap((name) => this.#kindsOf(name).map((kind) => probeOf(kind, name)));
    // All permits of a semaphore are asked for at once, and held until nobody can be without one.
    const { permits } = this.#schedule;
    const beside = steps.map((step) => (step.of === "permit" ? { ...step, beside: permits - 1, holdMs: 3_000 } : step));
    const probe = new SimulatedHost(this.#surroundings, this.#hosts.length, {
      ...QUIET_HOST,
      fair: true,
      fencing: true,
      programs: [[...beside, ...this.#dueSteps()]],
    });
    this.#hosts.push(probe);
    await this.#until(this.scheduler.now + SETTLE_MS, () => probe.done, "probe under way");
    await this.#background();
    for (const { name, tick } of this.#dueSteps())
      throw new Violation(
        "a tick runs until it succeeds",
        `tick ${tick} of ${simulatedName(name)} stays open while a host asks`,
      );
    // Whoever comes along sweeps what the dead have left: only the counters stay.
    const reader = this.#table.rows.find(({ sort }) => kindOfRow(sort) === "reader");
    if (reader !== undefined)
      throw new Violation("a wait leaves nothing behind", `${reader.sort} is there after a writer was let in`);
    for (const { uuid } of this.#deadWaiters(startedAt))
      throw new Violation("a wait leaves nothing behind", `${uuid} is not swept`);
  }

  /** Asks for the ticks that are open, as often as it takes if nothing is wrong. */
  #dueSteps(): readonly Step[] {
    const due = { maxAttempts: Number.POSITIVE_INFINITY, nextAfterMs: Number.POSITIVE_INFINITY };
    return this.#table.rows.flatMap(({ name, sort, tick, due: open }) =>
      kindOfRow(sort) === "lock" && tick !== undefined && tick === open
        ? [{ ...probeOf("mutex", name), kind: "once" as const, tick, times: 600, due }]
        : [],
    );
  }

  /** Which kinds of lock there are of a name: the exclusive side last, which removes what readers have left. */
  #kindsOf(name: string): readonly Kind[] {
    const kinds = new Set(
      [...this.#table.partition(name).keys()].map(
        (sort) => (ticketOf(sort) === undefined ? lockOf({ name, sort }) : lockOfQueue({ name, sort }))?.kind,
      ),
    );
    if (kinds.has("shared") || kinds.has("exclusive")) kinds.add("exclusive").add("shared");
    return (["mutex", "permit", "shared", "exclusive"] as const).filter((kind) => kinds.has(kind) || kind === "mutex");
  }

  /** One host is busy, and another waits. */
  async #rivalry(): Promise<void> {
    const rivals = rivalsIn(this.#schedule);
    const hosts = rivals.map((plan, index) => new SimulatedHost(this.#surroundings, this.#hosts.length + index, plan));
    this.#hosts.push(...hosts);
    await this.#until(this.scheduler.now + SETTLE_MS, () => hosts.every(({ done }) => done), "rivals under way");
    await this.#background();
  }

  async #close(): Promise<void> {
    let open = this.#lives.length;
    for (const { host } of this.#lives) {
      host.close().then(
        () => {
          open -= 1;
        },
        (error: unknown) => {
          const detail = `a lock that no program had was held to the end: ${error}`;
          this.#surroundings.fail(new Violation("a wait leaves nothing behind", detail));
        },
      );
    }
    await this.#until(this.scheduler.now + BACKGROUND_MS, () => open === 0, `${open} hosts closing`);
    for (const life of this.#lives) checkIdle(life);
    // Those of a process that crashed stay open.
    const endless = this.#events.open.find((uuid) =>
      this.#lives.some(({ owner }) => uuid.startsWith(uuidStart(owner))),
    );
    if (endless === undefined) return;
    throw new Violation("each section tells of its beginning and its end", `${endless} has no end`);
  }

  readonly #observe = (): void => {
    this.#judge.observe();
    const { now } = this.scheduler;
    if (now < this.#schedule.calmAtMs + HUNG_MS + PAUSED_MS || this.#wants.size === 0) return;
    for (const want of this.#wants) {
      // While a success or a value cannot be written, the lease outlasts the section that the judge has seen end.
      const isEnding = this.#network.troublesAfterWorkSince(now);
      if (isEnding || want.locks.some((asking) => this.#judge.isHeld(asking, this.#heaviest(asking)))) {
        want.free = undefined;
        continue;
      }
      want.free ??= { since: now, longestMs: 0 };
      const { free } = want;
      // Waiters that were dead, and were watched one after the other, may be gone from the table by now.
      free.longestMs = Math.max(free.longestMs, this.#longestWaitMs(want.locks));
      const waited = now - free.since;
      if (waited > free.longestMs) {
        const names = want.locks.map(({ kind, name }) => `${kind} of ${name}`);
        throw new Violation("a free lock is obtained", `${names} was free for ${waited} ms while somebody waited`);
      }
    }
  };

  /** The most permits that anybody who waits for a semaphore asks for: where it is fair, those behind wait for that as well. */
  #heaviest({ kind, name, key }: Asking): number {
    if (kind !== "permit") return 1;
    const asked = [...this.#wants].flatMap(({ locks }) => locks.filter((other) => other.key === key));
    const placed = [...this.#table.partition(name).keys()].map(
      (sort) => this.#table.row({ name, sort })?.data?.sections,
    );
    return Math.max(
      1,
      ...asked.map(({ weight = 1 }) => weight),
      ...placed.map((sections) => Math.min(this.#schedule.permits, Number(sections ?? 1))),
    );
  }

  /** For how long locks may be free while somebody wants them. */
  #longestWaitMs(locks: readonly Asking[]): number {
    const longest = this.#longestTtlMs * 1.002 + OBTAIN_WITHIN_MS + this.#longestNeedMs;
    // Of the dead ahead, each may have to be watched for its lease; so may the rows of a set, one after the other.
    const inTheWay = ({ kind, name }: Asking): number =>
      [...this.#table.partition(name).keys()].filter((sort) => {
        return ticketOf(sort) !== undefined || (kind === "exclusive" && kindOfRow(sort) === "reader");
      }).length;
    return longest * locks.reduce((sum, asking) => sum + 1 + inTheWay(asking), 0);
  }

  #want(locks: readonly Asking[]): () => void {
    const want: Want = { locks, free: undefined };
    this.#wants.add(want);
    return () => void this.#wants.delete(want);
  }

  #arrived(arrival: Arrival): void {
    countArrival(this.coverage, arrival);
    const { message } = arrival;
    if (message.kind === "writeAll") {
      const uuids = message.takes.map(({ uuid }) => uuid);
      for (const uuid of uuids) this.#companions.set(uuid, uuids);
    }
    this.#tell(() => lineOf(arrival));
    this.#judge.arrived(arrival);
    if (message.kind === "write" && message.write.kind === "reissue")
      this.#reissuedFrom.set(message.write.uuid, message.write.from);
    if (message.kind === "write" && message.write.kind === "want")
      this.#longestNeedMs = Math.max(this.#longestNeedMs, markInNumber(message.write.until).needMs ?? 0);
    if (message.kind === "write" && isForced(message.write)) {
      this.#mend(arrival);
      this.#watchedAnew(arrival);
    }
  }

  /** Where a force has removed a uuid, it is another row to those who watch it because they do not know the time. */
  #watchedAnew({ rows: [change] }: Arrival): void {
    if (change === undefined || !change.hasChanged) return;
    const key = lockOf(change.at)?.key;
    for (const want of this.#wants) if (want.locks.some((asking) => asking.key === key)) want.free = undefined;
  }

  /**
   * Somebody took the lock from a holder that had just been renewed until an hour later, because its clock had been set:
   * nobody would enter for that hour. A person who sees that puts it right.
   */
  #mend({ rows: [change] }: Arrival): void {
    const row = change?.after;
    const soon = EPOCH + Math.ceil(this.scheduler.now + this.#longestTtlMs);
    if (row === undefined || row.uuid !== undefined || row.expires <= soon + NO_LEASE_MS) return;
    this.#table.plant(row, { ...change?.item, expires: soon });
    this.coverage.count("rows put right by hand");
  }

  #tell(what: () => string): void {
    if (this.#tracing) this.trace.push(shortUuids(`${this.scheduler.now.toFixed(3)} ${what()}`));
  }
}

/** An arrival, as the trace shows it. */
function lineOf({ sender, message, answer, rows, duplicate, answered }: Arrival): string {
  const left =
    answer?.kind === "query"
      ? answer.page.rows.map(({ sort, uuid, expires }) => `${sort} ${uuid} ${expires}`)
      : rows.map(({ after }) => `${after?.uuid} ${after?.expires}`);
  const how = duplicate ? " (copy)" : answered ? "" : " (unanswered)";
  return `${sender.owner}: ${textOf(message)} -> ${kindOf(answer)}${how}: ${left.join(", ")}`;
}

function kindOf(answer: Answer | undefined): string {
  if (answer === undefined) return "error";
  return "outcome" in answer ? answer.outcome.kind : answer.kind;
}

function textOf(value: object): string {
  return JSON.stringify(value, (_key, value: unknown) => (typeof value === "bigint" ? `${value}` : value));
}
