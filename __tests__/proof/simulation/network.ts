import { type Progress, storeFailure } from "../../../lib/dynamodb/failures.js";
import { TableSign } from "../../../lib/dynamodb/table-sign.js";
import { LockStoreError } from "../../../lib/errors.js";
import type { Address } from "../../../lib/protocol/addresses.js";
import type { Attributes, Row } from "../../../lib/protocol/row.js";
import type { WriteOutcome } from "../../../lib/store.js";
import { MemoryTable, type Partition } from "../../../lib/testing/memory-table.js";
import type { Clock } from "../../../lib/time/clock.js";
import type { Answer, Message } from "../../support/message.js";
import { aborted, answerOf, MemoryStore } from "../../support/message-store.js";
import { type Random, seededRandom, seededStreams } from "../../support/seeded-random.js";
import { type ConnectionDeath, ConnectionPool } from "./connection-pool.js";
import type { Process } from "./machine.js";
import { addressesOf } from "./message.js";
import type { Schedule } from "./schedule.js";
import { entryOf, type Scene, Watcher } from "./watcher.js";

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
  /** Whether a stranger that hands nothing on says that it passes. */
  readonly passes: boolean;
  /** The share of replies that are cut off: what the request asked for is done. */
  readonly unreadable: number;
  readonly strangers: readonly Stranger[];
  /** When the idle connections of all hosts die, and whether a request on one is reset or hangs. */
  readonly deaths: readonly ConnectionDeath[];
  readonly wrongDates: WrongDates | undefined;
}

/** Servers of the table whose clocks are wrong: each by more than any bounds can be wide. */
export interface WrongDates {
  readonly aheadMs: number;
  /** The share of replies that show it all the time. */
  readonly share: number;
  /** The share that shows it for a while: there may be but one connection, to one server. */
  readonly spell: { readonly atMs: number; readonly forMs: number; readonly share: number };
}

/**
 * For a while the table answers nobody: connections are refused, or hang, or every answer is an error. Or the hosts have no
 * credentials because that connection fails, and nothing leaves; or their clocks were put right, and no signature is accepted.
 */
export interface Outage {
  readonly atMs: number;
  readonly forMs: number;
  readonly how: "refuse" | "hang" | "error" | "credentials" | "signature";
}

/** For a while somebody else answers at the table's address, with a status and a date of its own. */
export interface Stranger {
  readonly atMs: number;
  readonly forMs: number;
  /** The share of requests that it answers, in per cent. */
  readonly share: number;
  /** Whether it hands requests on, and only their replies are lost. */
  readonly forwards: boolean;
}

/** A row that a request was about, before and after it. */
export interface Change {
  readonly at: Address;
  readonly before: Row | undefined;
  readonly after: Row | undefined;
  /** The whole item, which is more than the row where it counts tickets or has a date to be purged. */
  readonly item: Attributes | undefined;
  readonly hasChanged: boolean;
}

/** Who sends a message. */
export interface Sender {
  readonly owner: string;
  readonly process: Process;
  readonly clock: Pick<Clock, "listen" | "wall">;
  /** Until when it may send batches, on virtual time. */
  readonly batchesUntil?: number;
  /** By how much longer each of its messages takes, either way: it is far from the table. */
  readonly farMs?: number;
}

/** A sender, and what its client of the table knows. */
interface Client extends Sender {
  /** What it judges replies by. */
  readonly sign: TableSign;
  readonly pool: ConnectionPool;
}

/** When a copy of a request left. */
export interface Departure {
  readonly at: number;
  /** By how much the machine's wall clock had ever been set forward by then. */
  readonly forwardMs: number;
}

/** What became of one copy of a request. */
export interface Arrival {
  readonly sender: Sender;
  readonly message: Message;
  /** Undefined where an item was in the way that is none of ours. */
  readonly answer: Answer | undefined;
  /** One, but for a request about several rows, and none for a query. */
  readonly rows: readonly Change[];
  /** Whether its sender will hear of it, as far as the network is concerned. */
  readonly answered: boolean;
  readonly duplicate: boolean;
}

export interface NetworkEvents {
  sent(sender: Sender, message: Message): void;
  arrived(arrival: Arrival): void;
  /** A sender that still waits for it hears of it. */
  heard(sender: Sender, message: Message, answer: Answer): void;
  /**
   * A reply has told a sender's clock the time, whether somebody waits for the reply or not.
   * @param aheadMs by how much that was ahead of the table's.
   */
  learned(sender: Sender, request: Departure, aheadMs: number): void;
  /** The same as `heard` of an error that the table answered with: that copy is not under way any more. */
  turnedDown(message: Message): void;
  /** A sender gives a request up while its reply waits in the socket. */
  givenUpUnread(sender: Sender, message: Message): void;
}

/** The longest that a message takes when nothing is wrong. */
const CALM_DELAY_MS = 8;

const CLIENT_ATTEMPTS = 3;

/** What a sender hears. */
type Reply = { readonly answer: Answer } | { readonly error: LockStoreError; readonly again: boolean };

/** The network, and the front door of the table behind it. */
export class Network extends Watcher {
  readonly #events: NetworkEvents;
  readonly #plan: NetworkPlan;
  readonly #seed: number;
  readonly #calmAtMs: number;
  /** What the items of a name were until a moment, for reads that are not consistent. */
  readonly #past = new Map<string, { readonly at: number; readonly was: Partition }[]>();
  /** Processes that have heard the right time. */
  readonly #taught = new WeakSet<Process>();
  /** The share of writes that conflict with one of another Region, in per cent: some, where the table is one of several Regions. */
  readonly #conflicts: number;
  readonly #troubles: Troubles;
  #messages = 0;

  constructor(scene: Scene, { network, seed, calmAtMs }: Schedule, events: NetworkEvents) {
    super(scene);
    this.#events = events;
    this.#plan = network;
    this.#seed = seed;
    this.#calmAtMs = calmAtMs;
    const random = seededRandom(seed, "regions");
    this.#conflicts = random() < 0.15 ? random() * 30 : 0;
    this.#troubles = troublesOf(seed, calmAtMs, this.isHonest);
  }

  /** Whether nothing but errors and delays can hold up a renewal, and no server shows a wrong date. */
  get isHonest(): boolean {
    const { requestLoss, replyLoss, unreadable, outages, strangers, deaths, wrongDates } = this.#plan;
    const isLossless = requestLoss + replyLoss + unreadable + strangers.length + deaths.length === 0;
    return isLossless && wrongDates === undefined && outages.every(({ how }) => how !== "hang");
  }

  /** How many copies of requests are on their way to the table. */
  get underWay(): number {
    return this.#messages;
  }

  /** What a process uses as its store. */
  client(owner: string, process: Process, clock: Sender["clock"], farMs = 0): MemoryStore {
    let requests = 0;
    const draw = seededRandom(this.#seed, "batches", owner);
    // Few may send no batches, and most of those from some moment on.
    const batchesUntil = draw() < 0.1 ? draw() * this.#calmAtMs : Number.POSITIVE_INFINITY;
    const [sign, pool] = [new TableSign("memory"), new ConnectionPool()];
    const sender = { owner, process, clock, batchesUntil, farMs, sign, pool };
    const randomOf = seededStreams(this.#seed, "network", owner);
    const carry = (message: Message, signal: AbortSignal): Promise<Answer> => {
      requests += 1;
      return this.#exchange({ sender, message, signal, random: randomOf(requests), hasReply: false });
    };
    return new MemoryStore(this.scene.table, carry);
  }

  /** One request as its sender sees it: an answer, an error, or the end of its patience. */
  #exchange(request: Request): Promise<Answer> {
    const { sender, message, signal, random } = request;
    return new Promise((resolve, reject) => {
      let open = true;
      const close = (): boolean => {
        const was = open;
        open = false;
        return was;
      };
      const leftAt = this.now;
      const onAbort = (): void => {
        if (!close()) return;
        if (request.hasReply) this.#events.givenUpUnread(sender, message);
        sender.pool.closeQuiet(leftAt);
        reject(aborted(signal));
      };
      if (signal.aborted) {
        onAbort();
        return;
      }
      // Each request has a signal of its own, so nobody minds what stays on it.
      signal.addEventListener("abort", onAbort);
      const attempt = (number: number): void => {
        if (number === 1) for (const part of partsOf(message)) this.#events.sent(sender, part);
        this.#send(request, (reply) => {
          if (!open) return;
          if ("answer" in reply) {
            close();
            this.#hear(sender, message, reply.answer);
            resolve(number > 1 ? retried(reply.answer) : reply.answer);
          } else if (reply.again && this.#plan.clientRetries && number < CLIENT_ATTEMPTS) {
            this.count("requests that the client sent again");
            sender.process.after(random() * 100 * number, () => {
              if (open) attempt(number + 1);
            });
          } else {
            close();
            if (reply.error.answered && reply !== CONFLICT)
              for (const part of partsOf(message)) this.#events.turnedDown(part);
            const { message: text, transient, answered, throttled, cause } = reply.error;
            const options = { transient, answered, throttled, cause, retried: true };
            reject(number > 1 ? new LockStoreError(text, options) : reply.error);
          }
        });
      };
      attempt(1);
    });
  }

  /** One copy on its way there and back. */
  #send(request: Request, heard: (reply: Reply) => void): void {
    const { sender, message, random } = request;
    const leftAt = this.now;
    const hear = (reply: Reply): void => {
      if ("error" in reply && !reply.error.answered) sender.pool.closeQuiet(leftAt);
      else sender.pool.give(this.now);
      heard(reply);
    };
    const outage = this.#outage();
    if (outage?.how === "credentials") {
      this.count("requests without credentials");
      this.scene.scheduler.wakeAt(this.now + random() * 5, () => sender.process.deliver(() => hear(NO_CREDENTIALS)));
      return;
    }
    const learn = sender.clock.listen?.();
    const departure = { at: this.now, forwardMs: sender.process.forwardMs };
    const plan = this.#now();
    const { farMs = 0 } = sender;
    const back = (ms: number, reply: Reply, shown?: Shown): void => {
      this.scene.scheduler.wakeAt(this.#arrivalAfter(ms, shown === undefined ? 0 : farMs), () => {
        request.hasReply = sender.process.asleep;
        sender.process.deliver(() => {
          request.hasReply = false;
          if (shown !== undefined) sender.sign.judge(OF_THE_TABLE, "memory", () => this.now);
          if (shown !== undefined && learn !== undefined) {
            const aheadMs = this.#mayMislead(sender.process) ? shown.aheadMs : 0;
            if (aheadMs === 0) this.#taught.add(sender.process);
            else this.count(`wrong dates: ${aheadMs > 0 ? "ahead" : "behind"}`);
            learn(dateOf(shown.time + aheadMs));
            this.#events.learned(sender, departure, aheadMs);
          }
          hear(reply);
        });
      });
    };
    if (outage?.how === "refuse") {
      back(random() * 5, lost("connection refused", true));
      return;
    }
    const [thereMs, backMs] = [delay(plan, random), delay(plan, random)];
    const fate = { request: random() * 100, reply: random() * 100, throttled: random() * 100, again: random() * 100 };
    const breaks = random() < 0.5;
    const lateMs = random() * plan.lateMs;
    const whose = plan.wrongDates === undefined ? 0 : random() * 100;
    const strange = this.#stranger(sender);
    const isUnreadable = plan.unreadable > 0 && random() * 100 < plan.unreadable;
    // A connection that breaks tells so at once; one that hangs says nothing for ever.
    const vanish = (ms: number): void => {
      if (breaks) back(ms, lost("connection reset", true));
    };
    if (outage?.how === "hang" || fate.request < plan.requestLoss) {
      this.count("requests lost");
      vanish(thereMs);
      return;
    }
    const dead = sender.pool.take(this.now, plan.deaths);
    if (dead !== undefined) {
      this.count(`requests on dead connections: ${dead}`);
      if (dead === "reset") back(0, lost("connection reset", true));
      return;
    }
    if (strange !== undefined && !strange.forwards) {
      this.#answerInstead(strange, sender, thereMs + backMs, hear);
      return;
    }
    const stale = isConsistent(message) || random() * 100 >= plan.stale ? 0 : random() * 1_000;
    const at = this.#arrivalAfter(thereMs, farMs);
    // The copy comes after what it is a copy of: one that overtook it would be the original.
    const repeat = (): void => {
      if (fate.again >= plan.duplicates) return;
      for (const part of partsOf(message)) {
        this.#arrive(sender, part, this.#arrivalAfter(lateMs), { duplicate: true, answered: false, stale });
      }
    };
    if (message.kind === "renewAll" && this.now >= (sender.batchesUntil ?? Infinity)) {
      this.count("batches without the permission");
      this.scene.scheduler.at(at, () => back(backMs, { error: notPermitted(), again: false }, this.#shown(whose)));
      return;
    }
    const refusal = this.#refusalOf(message);
    if (refusal !== undefined) {
      this.scene.scheduler.at(at, () => back(backMs, { error: refusal, again: false }, this.#shown(whose)));
      return;
    }
    const isLost = fate.reply < plan.replyLoss;
    const isHeard = !isLost && !isUnreadable && strange === undefined;
    const mayConflict = this.#conflicts > 0 && message.kind === "write" && plan !== CALM;
    const meets = mayConflict ? seededRandom(this.#seed, "conflicts", sender.owner, this.now) : undefined;
    const conflicts = meets !== undefined && meets() * 100 < this.#conflicts;
    if (conflicts && meets() < 0.5) {
      this.count("conflicts of Regions: not applied");
      this.scene.scheduler.at(at, () => back(backMs, CONFLICT, this.#shown(whose)));
      return;
    }
    if (outage?.how === "signature") {
      this.count("requests with a signature of the future");
      this.scene.scheduler.at(at, () => back(backMs, BAD_SIGNATURE, this.#shown(whose)));
      return;
    }
    if (outage?.how === "error" || fate.throttled < plan.throttling) {
      this.count(outage === undefined ? "requests throttled" : "requests failed by an outage");
      this.scene.scheduler.at(at, () => {
        const error = new LockStoreError("throttled", { transient: true, throttled: outage === undefined });
        back(backMs, { error, again: false }, this.#shown(whose));
        repeat();
      });
      return;
    }
    const answered = (reply: Reply): void => {
      if (conflicts) this.count("conflicts of Regions: applied or refused");
      if (isLost) vanish(backMs);
      else if (strange !== undefined) this.#answerInstead(strange, sender, backMs, hear);
      else if (isUnreadable && message.kind !== "renewAll") {
        this.count("replies that cannot be read");
        back(backMs, UNREADABLE, this.#shown(whose));
      } else back(backMs, conflicts ? CONFLICT : reply, this.#shown(whose));
      repeat();
    };
    if (message.kind === "renewAll") this.#arriveAll(sender, message, at, { plan, random, isLost: !isHeard }, answered);
    else this.#arrive(sender, message, at, { duplicate: false, answered: isHeard && !conflicts, stale }, answered);
    if (isLost) this.count("replies lost");
  }

  /** Somebody else's answer arrives, which the sender's client judges. */
  #answerInstead({ forwards }: Stranger, sender: Client, ms: number, hear: (reply: Reply) => void): void {
    this.scene.scheduler.wakeAt(this.#arrivalAfter(ms), () =>
      sender.process.deliver(() => {
        this.count(`strangers' answers: ${sender.sign.isKnown ? "later" : "before the first of the table"}`);
        const statusCode = forwards ? 200 : this.#plan.passes ? 503 : 403;
        const error = sender.sign.judge({ statusCode }, "memory", () => this.now);
        if (error === undefined) throw new Error("a reply without the sign was believed");
        hear({ error, again: false });
      }),
    );
  }

  /** Who answers a request that leaves now in the place of the table. */
  #stranger({ owner }: Sender): Stranger | undefined {
    const { strangers } = this.#plan;
    if (strangers.length === 0 || this.now >= this.#calmAtMs) return undefined;
    const random = seededRandom(this.#seed, "strangers", owner, this.now);
    return strangers.find(
      ({ atMs, forMs, share }) => this.now >= atMs && this.now < atMs + forMs && random() * 100 < share,
    );
  }

  /** How the table refuses one kind of write although it answers all others; undefined where it does not. */
  #refusalOf(message: Message): LockStoreError | undefined {
    if (message.kind !== "write") return undefined;
    const { write } = message;
    const { now } = this;
    const { refusesData, afterWork } = this.#troubles;
    if (refusesData && write.kind === "renew" && write.data !== undefined) {
      this.count("data refused for good");
      return new LockStoreError("the data do not fit an index", { answered: true });
    }
    const isAfterWork = write.kind === "record" || write.kind === "put-result";
    if (!isAfterWork || afterWork === undefined) return undefined;
    const { atMs, endMs, isFinal } = afterWork;
    if (now < atMs || now >= endMs) return undefined;
    this.count(`steps after the work ${isFinal ? "refused for good" : "throttled"}`);
    return new LockStoreError("this row alone", { transient: !isFinal, throttled: !isFinal, answered: true });
  }

  /** Whether writes after the work may have got nowhere since then. */
  troublesAfterWorkSince(time: number): boolean {
    return (this.#troubles.afterWork?.endMs ?? 0) >= time;
  }

  /** Who has sent several writes in one request hears of each. */
  #hear(sender: Sender, message: Message, answer: Answer): void {
    if (answer.kind !== "renewAll") {
      this.#events.heard(sender, message, answer);
      return;
    }
    for (const [index, part] of partsOf(message).entries()) {
      const outcome = answer.outcomes[index];
      if (part.kind !== "write" || outcome === undefined) continue;
      if (!(outcome instanceof LockStoreError)) this.#events.heard(sender, part, { ...part, outcome });
      else if (outcome.answered) this.#events.turnedDown(part);
    }
  }

  /** A batch: each of its statements is throttled, lost, applied without an answer or repeated by itself. */
  #arriveAll(
    sender: Sender,
    message: Extract<Message, { kind: "renewAll" }>,
    at: number,
    { plan, random, isLost }: { readonly plan: Faults; readonly random: Random; readonly isLost: boolean },
    reply: (reply: Reply) => void,
  ): void {
    this.count(`batches of ${message.renewals.length > 4 ? "5 or more" : message.renewals.length}`);
    const outcomes: (WriteOutcome | LockStoreError)[] = [];
    let open = message.renewals.length;
    const parts = partsOf(message);
    const keys = new Set(message.renewals.map(({ at: { name, sort } }) => `${sort}/${name}`));
    if (keys.size < parts.length) {
      this.scene.scheduler.at(at, () => reply({ error: new LockStoreError("a row is there twice"), again: false }));
      return;
    }
    for (const [index, part] of parts.entries()) {
      const fate = { throttled: random() * 100, lost: random() * 100, reply: random() * 100, again: random() * 100 };
      const [isUnanswered, lateMs] = [fate.reply < plan.replyLoss, random() * plan.lateMs];
      const settle = (outcome: WriteOutcome | LockStoreError): void => {
        outcomes[index] = outcome;
        open -= 1;
        if (open === 0) reply({ answer: { ...message, outcomes } });
      };
      if (fate.throttled < plan.throttling || fate.lost < plan.requestLoss) {
        const throttled = fate.throttled < plan.throttling;
        this.count(throttled ? "statements throttled" : "statements lost");
        const options = { transient: true, throttled, answered: throttled };
        this.scene.scheduler.at(at, () => settle(new LockStoreError("one statement failed", options)));
        continue;
      }
      if (isUnanswered) this.count("statements applied without an answer");
      const copy = { duplicate: false, answered: !isLost && !isUnanswered, stale: 0 };
      this.#arrive(sender, part, at, copy, (one) => {
        if ("error" in one) settle(one.error);
        else if (isUnanswered) settle(new LockStoreError("no answer", { transient: true, answered: false }));
        else if (one.answer.kind === "write") settle(one.answer.outcome);
        if (fate.again >= plan.duplicates) return;
        this.#arrive(sender, part, this.#arrivalAfter(lateMs), { duplicate: true, answered: false, stale: 0 });
      });
    }
  }

  #arrive(
    sender: Sender,
    message: Message,
    at: number,
    copy: { readonly duplicate: boolean; readonly answered: boolean; readonly stale: number },
    reply?: (reply: Reply) => void,
  ): void {
    this.#messages += 1;
    this.scene.scheduler.at(at, () => {
      this.#messages -= 1;
      const befores = addressesOf(message).map((address) => this.#stateOf(address));
      const answer = this.#answer(message, copy.stale);
      const rows = befores.map((before) => this.#changeSince(before));
      this.#events.arrived({ sender, message, answer: "answer" in answer ? answer.answer : undefined, rows, ...copy });
      reply?.(answer);
    });
  }

  #stateOf(at: Address): State {
    const { table } = this.scene;
    return { at, partition: table.partition(at.name), item: table.item(at), row: table.row(at) };
  }

  /** What has become of a row; what it was is remembered. */
  #changeSince({ at, partition, item: was, row: before }: State): Change {
    const { table } = this.scene;
    if (table.partition(at.name) !== partition) this.#remember(at.name, partition);
    const item = table.item(at);
    const hasChanged = item !== was;
    return { at, before, after: hasChanged ? table.row(at) : before, item, hasChanged };
  }

  #answer(message: Message, stale: number): Reply {
    try {
      const isRead = message.kind === "read" || message.kind === "query";
      const answer = isRead && stale > 0 ? this.#asOf(message, this.now - stale) : undefined;
      return { answer: answer ?? answerOf(this.scene.table, message) };
    } catch (error) {
      if (!(error instanceof LockStoreError)) throw error;
      return { error, again: false };
    }
  }

  /** No message outlasts the faults, or they would never be over. @param farMs what it takes besides, because its host is far. */
  #arrivalAfter(ms: number, farMs = 0): number {
    const { now } = this;
    return Math.min(now + ms, Math.max(this.#calmAtMs, now + CALM_DELAY_MS)) + farMs;
  }

  #remember(name: string, was: Partition): void {
    const past = entryOf(this.#past, name, () => []);
    past.push({ at: this.now, was });
    if (past.length > 20) past.shift();
  }

  /** The answer as it was then: of what the first change since then replaced. Undefined where nothing has changed. */
  #asOf(message: Extract<Message, { kind: "read" | "query" }>, time: number): Answer | undefined {
    const { name } = message.kind === "read" ? message.at : message.query;
    const change = this.#past.get(name)?.find(({ at }) => at > time);
    if (change === undefined) return undefined;
    this.count("stale reads");
    const past = new MemoryTable();
    for (const [sort, item] of change.was) past.plant({ name, sort }, item);
    return answerOf(past, message);
  }

  #now(): Faults {
    return this.now < this.#calmAtMs ? this.#plan : CALM;
  }

  #outage(): Outage | undefined {
    const { now } = this;
    if (now >= this.#calmAtMs) return undefined;
    const { outages } = this.#plan;
    return [...outages, ...this.#troubles.outages].find(({ atMs, forMs }) => now >= atMs && now < atMs + forMs);
  }

  /** What the Date header of a reply is made of. @param whose which of the table's servers answers, from 0 to 100. */
  #shown(whose: number): Shown {
    const { now, tableTime: time } = this;
    const { wrongDates } = this.#now();
    if (wrongDates === undefined) return { time, aheadMs: 0 };
    const { aheadMs, share, spell } = wrongDates;
    const isSpell = now >= spell.atMs && now < spell.atMs + spell.forMs;
    return { time, aheadMs: whose < Math.max(share, isSpell ? spell.share : 0) ? aheadMs : 0 };
  }

  /**
   * Whether a wrong date can be told: the process has heard the right time, and its wall clock was not set forward since,
   * which leaves the bounds as wide as that.
   */
  #mayMislead(process: Process): boolean {
    return this.#taught.has(process) && process.forwardMs === 0;
  }
}

/** What the table refuses in some schedules, by their seed: so all others are as they were without. */
interface Troubles {
  /** Whether renewals with new data are refused for good, also when all else is calm. */
  readonly refusesData: boolean;
  /** When writes between the end of a section and its release get nowhere, although the table answers all others: also in a calm. */
  readonly afterWork: { readonly atMs: number; readonly endMs: number; readonly isFinal: boolean } | undefined;
  /** One that ends when all faults do. */
  readonly outages: readonly Outage[];
}

/** @param isHonest whether the network loses nothing: only then an outage that ends late tells whether leases outlast it. */
function troublesOf(seed: number, calmAtMs: number, isHonest: boolean): Troubles {
  const random = seededRandom(seed, "troubles");
  const isAlone = random() < 0.25;
  const afterWork = { atMs: random() * calmAtMs, endMs: calmAtMs + random() * 8_000, isFinal: random() < 0.5 };
  const refusesData = random() < 0.2;
  const lasts = 200 + random() * 3_000;
  const outage = { atMs: calmAtMs - lasts, forMs: lasts, how: random() < 0.5 ? "refuse" : "error" } as const;
  return {
    refusesData,
    afterWork: isAlone ? afterWork : undefined,
    outages: isHonest && random() < 0.6 ? [outage] : [],
  };
}

/** A row at one moment, its item, and all items of its name. */
interface State {
  readonly at: Address;
  readonly partition: Partition;
  readonly item: Attributes | undefined;
  readonly row: Row | undefined;
}

/** When a server answered, and by how much its clock is ahead. */
interface Shown {
  readonly time: number;
  readonly aheadMs: number;
}

interface Request {
  readonly sender: Client;
  readonly message: Message;
  readonly signal: AbortSignal;
  readonly random: Random;
  /** Whether a reply waits in the socket, because its process stands still or has only just woken. */
  hasReply: boolean;
}

/** Whether an answer is up to date whatever the network does. */
function isConsistent(message: Message): boolean {
  if (message.kind === "read") return message.consistent;
  return message.kind !== "query" || message.query.consistent;
}

/** What may happen to a message at some moment. */
type Faults = Omit<NetworkPlan, "outages" | "clientRetries" | "strangers" | "passes">;

const parts = new WeakMap<Message, readonly Message[]>();

/** The writes of a batch as messages of their own, the same ones each time; every other message is its only part. */
function partsOf(message: Message): readonly Message[] {
  if (message.kind !== "renewAll") return [message];
  const known = parts.get(message) ?? message.renewals.map((write) => ({ kind: "write", write }) as const);
  parts.set(message, known);
  return known;
}

/** As DynamoDB says that a permission is missing. */
function notPermitted(): LockStoreError {
  return new LockStoreError("no permission", {
    cause: Object.assign(new Error("no"), { name: "AccessDeniedException" }),
  });
}

/** What the store says of refusals that came to a copy which the client itself has sent again. */
function retried(answer: Answer): Answer {
  if (answer.kind === "renewAll") return { ...answer, outcomes: answer.outcomes.map(retriedOutcome) };
  return answer.kind === "write" ? { ...answer, outcome: retriedOutcome(answer.outcome) } : answer;
}

function retriedOutcome<Outcome extends WriteOutcome | LockStoreError>(outcome: Outcome): Outcome {
  return "kind" in outcome && outcome.kind === "refused" ? { ...outcome, retried: true } : outcome;
}

export const CALM: Faults = {
  delayMs: CALM_DELAY_MS,
  slow: 0,
  slowMs: 0,
  requestLoss: 0,
  replyLoss: 0,
  duplicates: 0,
  lateMs: 0,
  throttling: 0,
  stale: 0,
  unreadable: 0,
  deaths: [],
  wrongDates: undefined,
};

function delay({ delayMs, slow, slowMs }: Pick<NetworkPlan, "delayMs" | "slow" | "slowMs">, random: Random): number {
  const [which, howLong] = [random() * 100, random()];
  return 0.5 + howLong * (which < slow ? slowMs : delayMs);
}

/** As the store has it of a write that another Region's has met: it may have been applied, or not. */
const CONFLICT: Reply = {
  error: storeFailure(
    Object.assign(new Error("modified in another Region"), {
      ...{ name: "ReplicatedWriteConflictException", $fault: "client", $metadata: { attempts: 1 } },
    }),
    { action: "a write", tableName: "locks" },
  ),
  again: false,
};

/** The connection that gives credentials is broken, and nothing leaves. */
const NO_CREDENTIALS = failed(
  Object.assign(new Error("no credentials"), {
    name: "CredentialsProviderError",
    cause: Object.assign(new Error("getaddrinfo"), { code: "EAI_AGAIN" }),
  }),
  { hasLeft: false, isKnown: true },
);

/** As DynamoDB says it to a host whose clock was just put right. */
const BAD_SIGNATURE = failed(
  Object.assign(new Error("Signature not yet current"), { name: "InvalidSignatureException", $fault: "client" }),
  { hasLeft: true, isKnown: true },
);

/** A reply of the table's that is cut off. */
const UNREADABLE = failed(new SyntaxError("Unexpected end of JSON input"), { hasLeft: true, isKnown: true });

function failed(error: Error, progress: Progress): Reply {
  return { error: storeFailure(error, { action: "a request", tableName: "memory", ...progress }), again: false };
}

/** What every reply of the table has. */
const OF_THE_TABLE = { headers: { "content-type": "application/x-amz-json-1.0" } };

function lost(message: string, again: boolean): Reply {
  return { error: new LockStoreError(message, { transient: true, answered: false }), again };
}

/** The last date that was shown: replies of one second have the same. */
let lastDate = { second: Number.NaN, text: "" };

/** What the table's `Date` header says at a time. */
function dateOf(time: number): string {
  const second = Math.floor(time / 1_000);
  if (second !== lastDate.second) lastDate = { second, text: new Date(time).toUTCString() };
  return lastDate.text;
}
