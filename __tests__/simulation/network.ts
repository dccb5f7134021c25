import { admitItems, documentGuard, guardItem } from "../../lib/dynamodb/guards.js";
import { LockStoreError } from "../../lib/errors.js";
import type { Row } from "../../lib/store.js";
import type { TableStore, Waiter } from "../../lib/ticket-store.js";
import type { Clock } from "../../lib/time/clock.js";
import { type Random, seededRandom } from "../support/seeded-random.js";
import type { Process } from "./machine.js";
import { LAYOUT, type MemoryTable, type Operation, type Outcome } from "./memory-store.js";
import { pageOf, ticketStoreOver } from "./memory-tickets.js";
import type { Scheduler } from "./scheduler.js";

/** What the network between hosts and table does to messages while faults last. Shares are in per cent. */
export interface NetworkPlan {
  /** The longest that a message usually takes, in ms. */
  readonly delayMs: number;
  /** The share of messages that take up to `slowMs`, so that they overtake one another. */
  readonly slow: number;
  readonly slowMs: number;
  readonly requestLoss: number;
  readonly replyLoss: number;
  /** The share of requests that arrive a second time, up to `lateMs` later. */
  readonly duplicates: number;
  readonly lateMs: number;
  readonly throttling: number;
  /** The share of eventually consistent reads that are up to a second old. */
  readonly stale: number;
  /** Whether the client sends a request again by itself when its connection breaks, as the SDK does. */
  readonly clientRetries: boolean;
  readonly outages: readonly Outage[];
}

/** For a while the table answers nobody: connections are refused, or hang, or every answer is an error. */
export interface Outage {
  readonly atMs: number;
  readonly forMs: number;
  readonly how: "refuse" | "hang" | "error";
}

/** A row that a request was about, before and after it. */
export interface Change {
  readonly name: string;
  readonly before: Row | undefined;
  readonly after: Row | undefined;
}

/** What became of one copy of a request. */
export interface Arrival {
  readonly operation: Operation;
  readonly outcome: Outcome;
  /** One, but for a request about several rows. */
  readonly rows: readonly Change[];
  /** Whether its sender will hear of it, as far as the network is concerned. */
  readonly answered: boolean;
  readonly duplicate: boolean;
}

export interface NetworkEvents {
  sent(process: Process, operation: Operation): void;
  arrived(arrival: Arrival): void;
  /** A sender that still waits for it hears of it. */
  heard(process: Process, operation: Operation, outcome: Outcome): void;
  /** The same of an error that the table answered with: that copy is not under way any more. */
  turnedDown(operation: Operation): void;
  count(what: string): void;
}

/** The longest that a message takes when nothing is wrong. */
const CALM_DELAY_MS = 8;

const CLIENT_ATTEMPTS = 3;

type Answer = { readonly outcome: Outcome } | { readonly error: LockStoreError; readonly again: boolean };

/** The network, and the front door of the table behind it. */
export class Network {
  readonly #scheduler: Scheduler;
  readonly #table: MemoryTable;
  readonly #events: NetworkEvents;
  readonly #plan: NetworkPlan;
  readonly #options: { readonly epoch: number; readonly seed: number; readonly calmAt: number };
  /** What the rows were, for reads that are not consistent. */
  readonly #past = new Map<string, (Past & { readonly at: number })[]>();
  #messages = 0;

  constructor(
    scheduler: Scheduler,
    table: MemoryTable,
    events: NetworkEvents,
    plan: NetworkPlan,
    options: { readonly epoch: number; readonly seed: number; readonly calmAt: number },
  ) {
    this.#scheduler = scheduler;
    this.#table = table;
    this.#events = events;
    this.#plan = plan;
    this.#options = options;
  }

  /** How many copies of requests are on their way to the table. */
  get underWay(): number {
    return this.#messages;
  }

  /** What a process uses as its store. */
  client(owner: string, process: Process, clock: Pick<Clock, "listen">): TableStore {
    let requests = 0;
    const send = async <Expected extends Outcome>(operation: Operation, signal: AbortSignal): Promise<Expected> => {
      requests += 1;
      const random = seededRandom(this.#options.seed, "network", owner, requests);
      return (await this.#exchange({ process, clock, operation, signal, random })) as Expected;
    };
    return {
      tickets: ticketStoreOver(
        async (name, ticket, signal) =>
          (await send<Extract<Outcome, { kind: "ticket" }>>({ kind: "ticket", name, ticket }, signal)).result,
      ),
      admit: () => undefined,
      take: (claim, terms, signal) => send({ kind: "take", name: claim.name, claim, terms }, signal),
      takeAll: (takes, signal) => send({ kind: "takeAll", name: takes[0]?.claim.name ?? "", takes }, signal),
      read: async (name, { consistent }, signal) => {
        const { row } = await send<Extract<Outcome, { kind: "read" }>>({ kind: "read", name, consistent }, signal);
        return row;
      },
      renew: (renewal, signal) => send({ kind: "renew", ...renewal }, signal),
      restamp: (name, from, to, signal) => send({ kind: "restamp", name, from, to }, signal),
      reissue: (reissue, signal) => send({ kind: "reissue", ...reissue }, signal),
      release: (name, uuid, { kept, parked }, signal) => send({ kind: "release", name, uuid, kept, parked }, signal),
      want: (name, uuid, until, signal) => send({ kind: "want", name, uuid, until }, signal),
      force: (name, uuid, { now }, signal) => send({ kind: "force", name, uuid, now }, signal),
      // No lock depends on what a listing says, so nothing happens to it on its way.
      list: async (prefix, after) => this.#table.page(prefix, after),
      guard: (guard) => guardItem(LAYOUT, guard),
      documentGuard: (guard) => documentGuard(LAYOUT, guard),
      admitItems: (name, items) => admitItems(LAYOUT, name, items),
      transact: (writes, signal) => send({ kind: "transact", name: writes.guard.name, ...writes }, signal),
      close: () => undefined,
    };
  }

  /** One request as its sender sees it: an outcome, an error, or the end of its patience. */
  #exchange(request: Request): Promise<Outcome> {
    const { process, operation, signal, random } = request;
    return new Promise((resolve, reject) => {
      let open = true;
      const close = (): boolean => {
        const was = open;
        open = false;
        signal.removeEventListener("abort", onAbort);
        return was;
      };
      const onAbort = (): void => {
        if (close()) reject(new LockStoreError("aborted", { transient: true, answered: false, cause: signal.reason }));
      };
      if (signal.aborted) {
        onAbort();
        return;
      }
      signal.addEventListener("abort", onAbort, { once: true });
      const attempt = (number: number): void => {
        if (number === 1) this.#events.sent(process, operation);
        this.#send(request, (answer) => {
          if (!open) return;
          if ("outcome" in answer) {
            close();
            const { outcome } = answer;
            this.#events.heard(process, operation, outcome);
            resolve(outcome.kind === "refused" ? { ...outcome, retried: number > 1 } : outcome);
          } else if (answer.again && this.#plan.clientRetries && number < CLIENT_ATTEMPTS) {
            this.#events.count("requests that the client sent again");
            process.after(random() * 100 * number, () => {
              if (open) attempt(number + 1);
            });
          } else {
            close();
            if (answer.error.answered) this.#events.turnedDown(operation);
            reject(answer.error);
          }
        });
      };
      attempt(1);
    });
  }

  /** One copy on its way there and back. */
  #send({ process, clock, operation, random }: Request, hear: (answer: Answer) => void): void {
    const heard = clock.listen?.();
    const plan = this.#now();
    const back = (ms: number, answer: Answer, date?: string): void => {
      this.#scheduler.wakeAt(this.#arrivalAfter(ms), () =>
        process.deliver(() => {
          if (date !== undefined) heard?.(date);
          hear(answer);
        }),
      );
    };
    const outage = this.#outage();
    if (outage?.how === "refuse") {
      back(random() * 5, lost("connection refused", true));
      return;
    }
    const [thereMs, backMs] = [delay(plan, random), delay(plan, random)];
    const fate = { request: random() * 100, reply: random() * 100, throttled: random() * 100, again: random() * 100 };
    const breaks = random() < 0.5;
    const lateMs = random() * plan.lateMs;
    // A connection that breaks tells so at once; one that hangs says nothing for ever.
    const vanish = (ms: number): void => {
      if (breaks) back(ms, lost("connection reset", true));
    };
    if (outage?.how === "hang" || fate.request < plan.requestLoss) {
      this.#events.count("requests lost");
      vanish(thereMs);
      return;
    }
    const stale = isConsistent(operation) || random() * 100 >= plan.stale ? 0 : random() * 1_000;
    const at = this.#arrivalAfter(thereMs);
    // The copy comes after what it is a copy of: one that overtook it would be the original.
    const repeat = (): void => {
      if (fate.again >= plan.duplicates) return;
      this.#arrive(operation, this.#arrivalAfter(lateMs), { duplicate: true, answered: false, stale });
    };
    const isLost = fate.reply < plan.replyLoss;
    if (outage?.how === "error" || fate.throttled < plan.throttling) {
      this.#events.count(outage === undefined ? "requests throttled" : "requests failed by an outage");
      this.#scheduler.at(at, () => {
        const error = new LockStoreError("throttled", { transient: true });
        back(backMs, { error, again: false }, this.#date());
        repeat();
      });
      return;
    }
    this.#arrive(operation, at, { duplicate: false, answered: !isLost, stale }, (outcome) => {
      if (isLost) vanish(backMs);
      else back(backMs, { outcome }, this.#date());
      repeat();
    });
    if (isLost) this.#events.count("replies lost");
  }

  #arrive(
    operation: Operation,
    at: number,
    copy: { readonly duplicate: boolean; readonly answered: boolean; readonly stale: number },
    reply?: (outcome: Outcome) => void,
  ): void {
    this.#messages += 1;
    this.#scheduler.at(at, () => {
      this.#messages -= 1;
      const names = operation.kind === "takeAll" ? operation.takes.map(({ claim }) => claim.name) : [operation.name];
      const befores = names.map((name) => this.#table.rows.get(name));
      const queue = this.#table.tickets.of(operation.name);
      let outcome = this.#table.apply(operation);
      const rows = names.map((name, index) => ({
        name,
        before: befores[index],
        after: this.#table.rows.get(name),
      }));
      for (const { name, before, after } of rows) {
        const was = name === operation.name ? queue : this.#table.tickets.of(name);
        const changed = after !== before || was !== this.#table.tickets.of(name);
        if (changed) this.#remember(name, { row: before, queue: was });
      }
      if (copy.stale > 0) outcome = this.#asOf(operation, this.#scheduler.now - copy.stale) ?? outcome;
      this.#events.arrived({ operation, outcome, rows, ...copy });
      reply?.(outcome);
    });
  }

  /** No message outlasts the faults, or they would never be over. */
  #arrivalAfter(ms: number): number {
    const { now } = this.#scheduler;
    return Math.min(now + ms, Math.max(this.#options.calmAt, now + CALM_DELAY_MS));
  }

  #remember(name: string, was: Past): void {
    const past = this.#past.get(name) ?? [];
    past.push({ at: this.#scheduler.now, ...was });
    if (past.length > 20) past.shift();
    this.#past.set(name, past);
  }

  /** The answer as it was then: what the first change since then replaced. Undefined where nothing has changed. */
  #asOf(operation: Operation, time: number): Outcome | undefined {
    const change = this.#past.get(operation.name)?.find(({ at }) => at > time);
    if (change === undefined) return undefined;
    this.#events.count("stale reads");
    if (operation.kind !== "ticket") return { kind: "read", row: change.row };
    if (operation.ticket.kind !== "page") return undefined;
    const page = pageOf(change.queue, operation.ticket.request, change.row);
    return { kind: "ticket", result: { kind: "page", page } };
  }

  #now(): Omit<NetworkPlan, "outages" | "clientRetries"> {
    return this.#scheduler.now < this.#options.calmAt ? this.#plan : CALM;
  }

  #outage(): Outage | undefined {
    const { now } = this.#scheduler;
    if (now >= this.#options.calmAt) return undefined;
    return this.#plan.outages.find(({ atMs, forMs }) => now >= atMs && now < atMs + forMs);
  }

  /** The Date header: whole seconds, truncated. */
  #date(): string {
    return new Date(this.#options.epoch + this.#scheduler.now).toUTCString();
  }
}

interface Request {
  readonly process: Process;
  readonly clock: Pick<Clock, "listen">;
  readonly operation: Operation;
  readonly signal: AbortSignal;
  readonly random: Random;
}

/** What a name's rows were. */
interface Past {
  readonly row: Row | undefined;
  readonly queue: ReadonlyMap<bigint, Waiter>;
}

/** Whether an answer is up to date whatever the network does. */
function isConsistent(operation: Operation): boolean {
  if (operation.kind === "read") return operation.consistent;
  return operation.kind !== "ticket" || operation.ticket.kind !== "page" || operation.ticket.consistent;
}

const CALM: Omit<NetworkPlan, "outages" | "clientRetries"> = {
  delayMs: CALM_DELAY_MS,
  slow: 0,
  slowMs: 0,
  requestLoss: 0,
  replyLoss: 0,
  duplicates: 0,
  lateMs: 0,
  throttling: 0,
  stale: 0,
};

function delay({ delayMs, slow, slowMs }: Pick<NetworkPlan, "delayMs" | "slow" | "slowMs">, random: Random): number {
  const [which, howLong] = [random() * 100, random()];
  return 0.5 + howLong * (which < slow ? slowMs : delayMs);
}

function lost(message: string, again: boolean): Answer {
  return { error: new LockStoreError(message, { transient: true, answered: false }), again };
}
