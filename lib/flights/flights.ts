import { publish } from "../diagnostics.js";
import { LockStoreError } from "../errors.js";
import type { HeldLock } from "../holding/handle.js";
import type { FlightClaims, Resource } from "../kinds/kind.js";
import { copyOf, type LockData, type LockInfo } from "../lock-info.js";
import type { SingleFlightOptions } from "../options/calls.js";
import { checkHasSort, type TableLayout } from "../options/table.js";
import { resultAt } from "../protocol/addresses.js";
import { earliestOf } from "../protocol/lease-time.js";
import type { Row } from "../protocol/row.js";
import type { Sections } from "../queues/sections.js";
import { runUnder } from "../section-calls.js";
import { answeredWithin } from "../session/overdue.js";
import { persist } from "../session/requests.js";
import { isTransient, LONGEST_ATTEMPT_MS, noAnswer, pauseMs } from "../session/retry.js";
import type { Session } from "../session/session.js";
import { Call, type Progress } from "../taking/call.js";
import { lookForResult, Wish } from "./look.js";
import { type NumberedLook, SharedLooks } from "./shared-looks.js";

/** What a call gets: the lock, to run its function under, or the result of another flight. */
type Served =
  | { readonly kind: "lock"; readonly lock: HeldLock; readonly flight: Flight }
  | { readonly kind: "result"; readonly data: LockData };

/** A call that has no lock and no result yet. */
interface Seeker {
  readonly call: Call<Served>;
  readonly wish: Wish;
  /** The flight of this process whose result it takes. */
  joined?: Flight;
}

/** A section that runs for all calls that have joined it. */
interface Flight {
  readonly leader: Seeker;
  readonly made: number;
  /** Whether a new call may join it: only while its function runs under the lock. After that, its release may have been applied. */
  isOpen: boolean;
}

type FlightOptions = SingleFlightOptions & { readonly freshMs: number; readonly waitMs: number };

/** The flights of one process, for each lock. */
export class Flights {
  readonly #sections: Sections;
  readonly #layout: Pick<TableLayout, "sort">;
  readonly #each = new Map<string, LockFlights>();

  constructor(sections: Sections, layout: Pick<TableLayout, "sort"> = { sort: "sort" }) {
    this.#sections = sections;
    this.#layout = layout;
  }

  /** Runs `fn` under the lock, or returns the result of another flight. @param options all of them, except for the signal. */
  async call<Held, T>(resource: Resource, fn: (lock: Held) => T | Promise<T>, options: FlightOptions): Promise<T> {
    checkHasSort("singleFlight()", this.#layout);
    // Mutexes of one name may be kept in different ways: a function has to get the lock that it expects.
    const key = `${resource.name}/${JSON.stringify(resource.settings)}`;
    const forget = (): void => {
      if (flights.isIdle && this.#each.get(key) === flights) this.#each.delete(key);
    };
    const flights: LockFlights = this.#each.get(key) ?? new LockFlights(this.#sections, resource, forget);
    this.#each.set(key, flights);
    return await flights.call(fn, options).finally(forget);
  }

  /** For how many locks a call is in progress: others are forgotten. */
  get size(): number {
    return this.#each.size;
  }
}

/**
 * The flights of one lock in this process.
 *
 * 1. A call looks for a result by a query, which it shares with others: see {@link SharedLooks}.
 * 2. The first call that finds none leads: it asks for the lock, and the others wait in line behind it. A row that the leader
 *    sees while it waits may name another result: then one more look, a consistent one, gives the value.
 * 3. The leader's claim names the result that was seen last. It is refused if another flight has ended since.
 * 4. Once the leader has the lock, it runs its function, and all calls that came before share the result.
 */
class LockFlights implements FlightClaims {
  lastId: string | undefined;
  readonly #sections: Sections;
  readonly #session: Session;
  readonly #resource: Resource;
  readonly #onIdle: () => void;
  readonly #seekers = new Set<Seeker>();
  /** Those that have found no result, in that order. The first of them leads: it asks for the lock, or has it. */
  readonly #candidates = new Set<Seeker>();
  #leader: Seeker | undefined;
  /** Whether a row has named another result than the last look has shown. */
  #isHinted = false;
  readonly #looks: SharedLooks;
  #flight: Flight | undefined;
  /** The calls whose `waitMs` has passed, and which share a look, or the leader's try. */
  readonly #overdue = new Set<Call<Served>>();
  /** The lock's row as the last look has shown it, until a claim has asked for it. */
  #row: Row | undefined;

  /** @param onIdle is called when nothing is in progress for any call: that may be after the last call has its answer. */
  constructor(sections: Sections, resource: Resource, onIdle: () => void) {
    this.#sections = sections;
    this.#session = sections.session;
    this.#resource = resource;
    this.#onIdle = onIdle;
    this.#looks = new SharedLooks(this.#session, (look) => this.#lookForAll(look));
  }

  get isIdle(): boolean {
    return this.#seekers.size === 0;
  }

  async call<Held, T>(fn: (lock: Held) => T | Promise<T>, options: FlightOptions): Promise<T> {
    const { freshMs, signal, waitMs } = options;
    const bounds = { signal, waitMs, isPatient: waitMs > 0, asksFor: 1 };
    const call = new Call<Served>(this.#session, this.#resource.name, bounds);
    const seeker: Seeker = { call, wish: new Wish(this.#session, freshMs) };
    const start = (): void => this.#session.detach(this.#seek(seeker).catch((error: unknown) => call.fail(error)));
    const served = await call.begin(start);
    if (served.kind === "result") return served.data.value as T;
    return await this.#fly(served, fn, { freshMs, signal });
  }

  async looked(): Promise<Row | undefined> {
    await this.#looks.latest();
    const row = this.#row;
    this.#row = undefined;
    return row;
  }

  /** Looks for a result, unless a flight of this process will have one. A call that finds none may lead. @throws the store's error. */
  async #seek(seeker: Seeker): Promise<void> {
    const { call, wish } = seeker;
    this.#seekers.add(seeker);
    // The leader sees the rows itself.
    call.holderNow = () => this.#own ?? (this.#leader === seeker ? undefined : this.#leader?.call.holder);
    call.progressNow = () => this.#progressOf(seeker);
    call.onOverdue = () => this.#goesOn(call);
    if (call.isOverdue) this.#goesOn(call);
    // A call that has the lock leads until its flight is over.
    call.atEnd(() => this.#flight?.leader !== seeker && this.#leave(seeker));
    call.isBlocked();
    const flight = this.#flight;
    if (flight?.isOpen && call.isPatient && wish.joins(flight.made)) seeker.joined = flight;
    else await this.#ask(call);
    if (call.isSettled) return;
    this.#candidates.add(seeker);
    this.#lead();
    if (this.#leader === seeker) return;
    call.stay();
    call.review();
  }

  /** How far a call has come that does not lead. It shares the leader's try. */
  #progressOf(seeker: Seeker): Progress | undefined {
    if (!this.#candidates.has(seeker))
      return { isTrying: true, failed: seeker.call.failure, silence: undefined, because: undefined };
    return this.#own === undefined ? this.#leader?.call.progressNow?.() : undefined;
  }

  /** The `waitMs` of a call has passed, and a try goes on that it shares. */
  #goesOn(call: Call<Served>): void {
    // One that has ended as it was made the leader would stay here, and its review would ask for the next one without an end.
    if (call.isSettled) return;
    this.#overdue.add(call);
    if (this.#leader?.call !== call) this.#leader?.call.onOverdue?.();
  }

  /** Something has come of a look, or of the leader's try. */
  #review(): void {
    for (const call of [...this.#overdue]) if (call !== this.#leader?.call) call.review();
  }

  /**
   * Waits for a look, which leaves no later than one attempt beyond `waitMs`, as all requests of a call do. A call that waits for the
   * lock waits out its failures as well. @throws why there was no answer.
   */
  async #ask(call: Call<Served>): Promise<void> {
    const { clock, scheduler } = this.#session;
    const slotEnds = call.attemptEnds(clock.atMost());
    for (let number = 1; ; number += 1) {
      const { left, answered } = this.#looks.ask();
      const hasLeft = await answeredWithin(clock, slotEnds - clock.atMost(), left);
      if (hasLeft === undefined) throw call.failure ?? scheduler.unsent(call.waitedMs);
      const ms = call.isPatient ? Number.POSITIVE_INFINITY : call.until() - clock.atMost();
      const looked = answered.then(() => true);
      try {
        if (await answeredWithin(clock, ms, looked)) return;
        throw noAnswer(call.waitedMs, { sent: 1, failure: call.failure });
      } catch (error) {
        if (!call.isPatient || call.isSettled || !isTransient(error) || clock.atMost() >= call.until()) throw error;
      }
      // A look may fail at once, before anything is sent.
      await this.#pause(call, pauseMs(this.#session, number));
      if (call.isSettled) return;
    }
  }

  /** Ends early with its call. */
  async #pause(call: Call<Served>, ms: number): Promise<void> {
    const ended = new AbortController();
    call.atEnd(() => ended.abort());
    await this.#session.clock.sleep(ms, ended.signal).catch(() => undefined);
  }

  #leave(seeker: Seeker): void {
    this.#seekers.delete(seeker);
    this.#overdue.delete(seeker.call);
    this.#candidates.delete(seeker);
    if (this.#leader === seeker) this.#leader = undefined;
    this.#lead();
    if (this.isIdle) this.#onIdle();
  }

  /** The lock, if a section of this process has it. A lease that is not handed out yet does not count. */
  get #own(): LockInfo | undefined {
    return this.#session.leases.on(this.#resource.at).find(({ inUseSince }) => inUseSince !== undefined)?.info;
  }

  /** Looks for a result, for all calls that have asked. @throws the store's error. */
  async #lookForAll({ number, isLatest, lastNumber, onSent }: NumberedLook): Promise<void> {
    const seekers = [...this.#seekers].filter(({ call }) => !call.isSettled);
    if (seekers.length === 0) return;
    const isConsistent = this.#isHinted || seekers.some(({ wish }) => wish.freshMs === 0);
    this.#isHinted = false;
    const onFailure = (cause: unknown): void => {
      for (const { call } of this.#seekers) call.failure = cause;
      this.#review();
    };
    const found = await lookForResult(this.#session, this.#resource.at, isConsistent, { onSent, onFailure });
    const look = { ...found, number, lastNumber: lastNumber() };
    if (isLatest()) {
      this.lastId = look.row?.result?.id;
      // If a section of this process has the row, the local line knows more.
      this.#row = look.row?.uuid !== undefined && this.#own?.uuid === look.row.uuid ? undefined : look.row;
      this.#session.sightings.note(this.#resource.at, look.row);
    }
    for (const seeker of seekers) if (seeker.wish.takes(look)) share(seeker, look.found?.data ?? {});
  }

  /** Unless a call leads, lets the first one that has found no result ask for the lock, on behalf of all. */
  #lead(): void {
    const [seeker] = this.#candidates;
    if (this.#leader !== undefined || seeker === undefined) return;
    this.#leader = seeker;
    const { call } = seeker;
    const request = { resource: this.#resource, data: undefined, holdAtLeastMs: 0, flight: this };
    const waiter = { request, call, settle: (lock: HeldLock) => this.#begin(seeker, lock) };
    call.onSeen = (row) => this.#saw(row);
    call.onReview = () => this.#review();
    if (call.isPatient) this.#sections.add(waiter);
    else this.#sections.try(waiter, () => refuse(call));
    if (this.#overdue.size > 0) call.onOverdue?.();
  }

  #saw(row: Row): void {
    if (row.result?.id === this.lastId) return;
    this.#isHinted = true;
    // If this look fails, the next row that is seen asks for another.
    this.#looks.ask();
  }

  #begin(leader: Seeker, lock: HeldLock): void {
    const flight: Flight = { leader, made: earliestOf(this.#session.clock.wall()), isOpen: true };
    this.#flight = flight;
    leader.call.settle({ kind: "lock", lock, flight });
    // After a loss, its function may run on for as long as it likes. No call waits for it, because its result cannot be shared.
    lock.onLost = () => this.#end(flight);
    for (const seeker of this.#seekers) if (seeker.call.isPatient) seeker.joined = flight;
    this.#review();
  }

  async #fly<Held, T>(
    { lock, flight }: Extract<Served, { kind: "lock" }>,
    fn: (lock: Held) => T | Promise<T>,
    { freshMs, signal }: SingleFlightOptions & { readonly freshMs: number },
  ): Promise<T> {
    let data: LockData | undefined;
    const section = async (held: Held): Promise<T> => {
      const value = await fn(held);
      flight.isOpen = false;
      data = await this.#put(lock, value, { made: flight.made, freshUntil: flight.made + freshMs });
      return value;
    };
    try {
      const value = await runUnder(lock, section, signal);
      for (const seeker of this.#seekers) if (data !== undefined && seeker.joined === flight) share(seeker, data);
      return value;
    } finally {
      this.#end(flight);
    }
  }

  #end(flight: Flight): void {
    flight.isOpen = false;
    if (this.#flight === flight) this.#flight = undefined;
    this.#leave(flight.leader);
  }

  /** Writes the value for other calls. @returns what is shared with them; undefined if it cannot be shared. */
  async #put(
    lock: HeldLock,
    value: unknown,
    dates: { readonly made: number; readonly freshUntil: number },
  ): Promise<LockData | undefined> {
    // A function that has unlocked its lock, or lost it, did not run alone to its end.
    if (!lock.held) return undefined;
    const { store, owner } = this.#session;
    const { name } = this.#resource;
    const result = { id: lock.uuid, ...dates };
    try {
      const shared: LockData = value === undefined ? {} : { value };
      store.admitResult(shared);
      const data = copyOf(shared);
      const write = { kind: "put-result", at: resultAt(name), result, owner, data } as const;
      const stepEnds = lock.untilStepEnds();
      // A lock that is lost names no result.
      const until = (): number => (lock.held ? stepEnds() : Number.NEGATIVE_INFINITY);
      const persistence = { kind: "release", until, firstTimeoutMs: LONGEST_ATTEMPT_MS } as const;
      const { kind } = await persist(this.#session, persistence, (signal) => store.write(write, signal));
      if (kind === "refused")
        throw new LockStoreError(`The row for the result of lock ${JSON.stringify(name)} is not ours`);
      lock.names(result);
      return data;
    } catch (cause) {
      publish("dynamutex:not-shared", { name, uuid: lock.uuid, cause });
      if (!isTransient(cause) && this.#session.isNews(`not shared: ${name}`)) {
        process.emitWarning(`The result of ${JSON.stringify(name)} is not shared: ${cause}`, "DynamutexWarning");
      }
      return undefined;
    }
  }
}

/** Ends a call with the result of another flight, of which it gets a copy of its own. */
function share({ call }: Seeker, data: LockData): void {
  call.missed("shared");
  call.settle({ kind: "result", data: copyOf(data) });
}

/** Ends a call that does not wait, if another holder has the lock. */
function refuse(call: Call<Served>): void {
  call.missed("held");
  call.fail(call.refusal());
}
