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
import { onAbort } from "../session/abort-listening.js";
import { persist } from "../session/requests.js";
import { isTransient, LONGEST_ATTEMPT_MS } from "../session/retry.js";
import type { Session } from "../session/session.js";
import { Wait } from "../taking/wait.js";
import { type Look, lookForResult, Wish } from "./look.js";

/** What a call gets: the lock, to run its function under, or the result of another. */
type Served =
  | { readonly kind: "lock"; readonly lock: HeldLock; readonly flight: Flight }
  | { readonly kind: "result"; readonly data: LockData };

/** A call that has neither yet. */
interface Asker {
  readonly wait: Wait;
  readonly wish: Wish;
  readonly deliver: (served: Served) => boolean;
  readonly fail: (error: unknown) => void;
  /** The flight of this process whose result it takes. */
  joined: Flight | undefined;
}

/** A section that runs for all who have joined it. */
interface Flight {
  readonly made: number;
  readonly over: Promise<void>;
  readonly end: () => void;
  /** Whether a call that comes now may join it: its function runs under the lock. After that its release may have been applied. */
  isOpen: boolean;
}

/** The flights of one process, for each lock. */
export class Flights {
  readonly #sections: Sections;
  readonly #layout: Pick<TableLayout, "sort">;
  readonly #each = new Map<string, LockFlights>();

  constructor(sections: Sections, layout: Pick<TableLayout, "sort"> = { sort: "sort" }) {
    this.#sections = sections;
    this.#layout = layout;
  }

  /** Runs `fn` under the lock, or gives what another has come to. @param options with nothing left out but the signal. */
  async call<Held, T>(
    resource: Resource,
    fn: (lock: Held) => T | Promise<T>,
    options: SingleFlightOptions & { readonly freshMs: number; readonly waitMs: number },
  ): Promise<T> {
    checkHasSort("singleFlight()", this.#layout);
    // Mutexes of one name may be kept in different ways: a function has to get the lock that it expects.
    const key = `${resource.name}/${JSON.stringify(resource.settings)}`;
    const forget = (): void => {
      if (flights.isIdle && this.#each.get(key) === flights) this.#each.delete(key);
    };
    const flights: LockFlights = this.#each.get(key) ?? new LockFlights(this.#sections, resource, forget);
    this.#each.set(key, flights);
    // What was done for a call may end after it.
    return await flights.call(fn, options).finally(forget);
  }

  /** Of how many locks a call is under way: others are forgotten. */
  get size(): number {
    return this.#each.size;
  }
}

/**
 * The flights of one lock in this process.
 *
 * 1. A call looks for a result by a query, which it shares with the calls of the same moment.
 * 2. The first that finds none asks for the lock, and the others wait for it. Each row that it sees while it waits may name
 *    another result: then one more look, a consistent one, gives the value.
 * 3. Its claim names the result that was seen last. A flight that has ended since refuses it.
 * 4. Once it has the lock it runs its function, and all who came before that share what it comes to.
 */
class LockFlights implements FlightClaims {
  lastId: string | undefined;
  readonly #sections: Sections;
  readonly #session: Session;
  readonly #resource: Resource;
  readonly #onLed: () => void;
  readonly #askers = new Set<Asker>();
  /** Those of them that no look was sent for. */
  readonly #newcomers = new Set<Asker>();
  /** Whether a row has named another result than the last look has shown. */
  #isHinted = false;
  #looking: Promise<void> | undefined;
  #leading: Promise<void> | undefined;
  #leader: Asker | undefined;
  #flight: Flight | undefined;
  /** The lock's row as the last look has shown it, until a claim has asked for it. */
  #row: Row | undefined;

  /** @param onLed is told when nobody asks for the lock any more. */
  constructor(sections: Sections, resource: Resource, onLed: () => void) {
    this.#sections = sections;
    this.#session = sections.session;
    this.#resource = resource;
    this.#onLed = onLed;
  }

  get isIdle(): boolean {
    return this.#askers.size === 0 && [this.#flight, this.#looking, this.#leading].every((work) => work === undefined);
  }

  async call<Held, T>(
    fn: (lock: Held) => T | Promise<T>,
    { freshMs, signal, waitMs }: SingleFlightOptions & { readonly freshMs: number; readonly waitMs: number },
  ): Promise<T> {
    const wait = new Wait(this.#session, this.#resource.name, { patient: waitMs > 0, asksFor: 1 });
    const wish = new Wish(this.#session, freshMs);
    const work = (deliver: Asker["deliver"]) => this.#enter({ wait, wish, deliver });
    const bounds = { signal, waitMs: waitMs === 0 ? Number.POSITIVE_INFINITY : waitMs };
    const served = await wait.run<Served>(work, bounds);
    if (served.kind === "result") return served.data.value as T;
    return await this.#fly(served, fn, { freshMs, signal });
  }

  async looked(): Promise<Row | undefined> {
    await this.#looking;
    const row = this.#row;
    this.#row = undefined;
    return row;
  }

  /** One more call. @returns when it has had its answer. @throws what it is to be answered with. */
  #enter(call: Pick<Asker, "wait" | "wish" | "deliver">): Promise<void> {
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        stopListening();
        this.#askers.delete(asker);
        this.#newcomers.delete(asker);
        resolve();
      };
      const fail = (error: unknown): void => {
        reject(error);
        leave();
      };
      const asker: Asker = { ...call, fail, joined: undefined };
      // The one that leads sees the rows itself.
      const holder = () => this.#own ?? (this.#leader === asker ? undefined : this.#leader?.wait.holder);
      call.wait.blocker.sawLocally(holder);
      const stopListening = onAbort(call.wait.enough, leave);
      this.#askers.add(asker);
      const { made, isOpen } = this.#flight ?? { made: 0, isOpen: false };
      if (isOpen && call.wait.isPatient && call.wish.joins(made)) {
        asker.joined = this.#flight;
        return;
      }
      this.#newcomers.add(asker);
      this.#look();
    });
  }

  /** The lock, as a section of this process has it. */
  get #own(): LockInfo | undefined {
    const { name, sort } = this.#resource.at;
    return [...this.#session.leases].find(({ row }) => row.at.name === name && row.at.sort === sort)?.row.info;
  }

  /** Sees to it that somebody looks for a result, and then that somebody asks for the lock. */
  #look(): void {
    this.#looking ??= this.#lookForAll().finally(() => {
      this.#looking = undefined;
      this.#refuseTries();
      this.#leading ??= this.#lead().finally(() => {
        this.#leading = undefined;
        this.#onLed();
      });
    });
  }

  async #lookForAll(): Promise<void> {
    // The calls of one moment share a look.
    await Promise.resolve();
    while (this.#newcomers.size > 0 || this.#isHinted) {
      const askers = [...(this.#isHinted ? this.#askers : this.#newcomers)];
      const isConsistent = this.#isHinted || askers.some(({ wish }) => wish.freshMs === 0);
      this.#isHinted = false;
      this.#newcomers.clear();
      try {
        this.#found(await lookForResult(this.#session, this.#resource.at, isConsistent), askers);
      } catch (error) {
        for (const asker of askers) asker.fail(error);
      }
    }
  }

  #found(look: Look, askers: readonly Asker[]): void {
    this.lastId = look.row?.result?.id;
    // Of a section of this process the local line knows more.
    this.#row = look.row?.uuid !== undefined && this.#own?.uuid === look.row.uuid ? undefined : look.row;
    this.#session.sightings.note(this.#resource.at, look.row);
    for (const asker of askers) {
      if (this.#askers.has(asker) && asker.wish.takes(look)) this.#share(asker, look.found?.data ?? {});
    }
  }

  /** The call has the result of another, and a copy of its own of that. */
  #share({ wait, deliver }: Asker, data: LockData): void {
    wait.missed("shared");
    deliver({ kind: "result", data: copyOf(data) });
  }

  /** Asks for the lock as long as there are calls without an answer: the first of them for all. */
  async #lead(): Promise<void> {
    for (;;) {
      await this.#looking;
      const [leader] = this.#askers;
      if (leader === undefined) return;
      this.#leader = leader;
      this.#refuseTries();
      const { wait } = leader;
      const request = { resource: this.#resource, data: undefined, holdAtLeastMs: 0, flight: this };
      const begin = (lock: HeldLock): boolean => this.#begin(leader, lock);
      wait.blocker.onSeen = (row) => this.#saw(row);
      try {
        if (wait.isPatient) await this.#sections.serve(request, wait, begin);
        else if ((await this.#sections.tryServe(request, wait, begin)) !== "delivered") this.#refuse(leader);
      } catch (error) {
        leader.fail(error);
      }
      await this.#flight?.over;
      this.#leader = undefined;
    }
  }

  /** Calls that wait for nobody end where another call of this process goes first, once a look has found nothing for them. */
  #refuseTries(): void {
    if (this.#leader === undefined || this.#looking !== undefined) return;
    for (const asker of [...this.#askers]) if (!asker.wait.isPatient && asker !== this.#leader) this.#refuse(asker);
  }

  #saw(row: Row): void {
    if (row.result?.id === this.lastId) return;
    this.#isHinted = true;
    this.#look();
  }

  #refuse({ wait, fail }: Asker): void {
    wait.missed("held");
    fail(wait.timeout());
  }

  #begin(leader: Asker, lock: HeldLock): boolean {
    let end = (): void => undefined;
    const over = new Promise<void>((resolve) => {
      end = resolve;
    });
    const flight: Flight = { made: earliestOf(this.#session.clock.wall()), over, end, isOpen: true };
    if (!leader.deliver({ kind: "lock", lock, flight })) return false;
    this.#flight = flight;
    // Its function may go on for as long as it likes: nobody waits for what cannot be shared.
    lock.onLost = () => this.#end(flight);
    this.#newcomers.clear();
    for (const asker of [...this.#askers]) {
      if (asker.wait.isPatient) asker.joined = flight;
      else this.#refuse(asker);
    }
    return true;
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
      const joined = [...this.#askers].filter((asker) => asker.joined === flight);
      if (data !== undefined) for (const asker of joined) this.#share(asker, data);
      return value;
    } finally {
      this.#end(flight);
    }
  }

  #end(flight: Flight): void {
    flight.isOpen = false;
    if (this.#flight === flight) this.#flight = undefined;
    flight.end();
  }

  /** @returns what is shared with others; undefined if that cannot be. */
  async #put(
    lock: HeldLock,
    value: unknown,
    dates: { readonly made: number; readonly freshUntil: number },
  ): Promise<LockData | undefined> {
    // A function that has unlocked its lock, or lost it, did not run alone to its end.
    if (!lock.held) return undefined;
    const { store, clock, owner } = this.#session;
    const { name } = this.#resource;
    const result = { id: lock.uuid, ...dates };
    try {
      const shared: LockData = value === undefined ? {} : { value };
      store.admitResult(shared);
      const data = copyOf(shared);
      const write = { kind: "put-result", at: resultAt(name), result, owner, data } as const;
      const until = (): number => clock.atMost() + lock.remainingMs;
      const persistence = { kind: "take", until, attemptMs: LONGEST_ATTEMPT_MS } as const;
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
