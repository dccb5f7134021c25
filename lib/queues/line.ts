import type { HeldLock } from "../holding/handle.js";
import type { OwnLease, Resource, ResourceClaim, SectionRequest } from "../kinds/kind.js";
import type { LockInfo } from "../lock-info.js";
import type { Session } from "../session/session.js";
import type { Call, Failure, Progress } from "../taking/call.js";
import { type Claimed, looksFree, type Refusal, tryClaim } from "../taking/claim.js";
import { Wait } from "../taking/wait.js";
import { type Blocked, blockedFromNow } from "../taking/watch.js";
import { fits } from "./fits.js";
import type { Turns } from "./turns.js";

/** What a queue adds to a claim: what a look has shown, and until when the claim may rely on it. */
export type ClaimHow = Pick<ResourceClaim, "seen" | "ahead" | "until" | "onTaken">;

/** The outcome of one try: that of a claim, or a refusal without a claim because others are ahead. */
export type TryOutcome = Claimed<OwnLease> | { readonly kind: Refusal };

/** A call that wants a lock. */
export interface Waiter {
  readonly request: SectionRequest;
  readonly call: Call<unknown>;
  /** Settles the call with the lock: it has had no answer so far. */
  readonly settle: (lock: HeldLock) => void;
}

/** A waiter that stands in line. */
export interface Standing extends Waiter {
  /** Waiters are numbered in the order of asking. */
  readonly number: number;
  /** Asks the table for it. */
  agent: Agent | undefined;
}

/** Asks the table for a lock: for a waiter in line, or for a try. */
export type Agent = Wait<Waiter>;

/** The reason with which an agent or a draw ends when nobody needs it any more. */
export const NOBODY_WAITS: Error = new Error("Nobody waits any more");

/**
 * The callers of this process for one lock, first come, first served, the leases that they have, and the agents that ask the table
 * for more. An agent asks for one waiter. If that waiter goes, the agent asks for the first one that has none, or ends. At most one
 * agent watches the lock for longer than one claim: others would see the same.
 */
export class Line {
  readonly resource: Resource;
  /** Since when holders elsewhere have kept this line from the row; undefined if they have not. */
  blocked: Blocked | undefined;
  /** How many leases its callers may have at once: as many as the one that knows the most of them says. */
  capacity = 0;
  /** In the order of their numbers. */
  readonly waiters: Standing[] = [];
  /** The leases that its callers have, the latest last. */
  readonly leases: Set<OwnLease> = new Set();
  /** The latest of them, or one that has ended. */
  #latest: OwnLease | undefined;
  /** The agents and tries that may still take a lease, including those that nobody needs any more. */
  readonly #claiming = new Set<Agent>();
  readonly #session: Session;
  readonly #turns: Turns;
  /** The agent that watches the lock, or would if its claim is refused: callers that come now stand behind it. */
  #watcher: Agent | undefined;
  /** How many waiters have an agent. */
  #agents = 0;
  #lastNumber = 0;
  #asking: Agent | undefined;
  /** The calls whose `waitMs` has passed, and which share a try that is under way. */
  readonly #overdue = new Set<Call<unknown>>();
  /** Those who want to know when something has come of what this process has sent. */
  readonly #curious: (() => void)[] = [];

  constructor(session: Session, turns: Turns, resource: Resource) {
    this.#session = session;
    this.#turns = turns;
    this.resource = resource;
  }

  /** The number of the caller that asked last; 0 if none has. */
  get lastNumber(): number {
    return this.#lastNumber;
  }

  /** The number of the first waiter. */
  get first(): number | undefined {
    return this.waiters[0]?.number;
  }

  get hasAgent(): boolean {
    return this.#agents > 0;
  }

  /** Whether as many leases are in use or being claimed as there may be. */
  get isFull(): boolean {
    return this.leases.size + this.#claiming.size >= this.capacity;
  }

  get isEmpty(): boolean {
    return this.leases.size + this.waiters.length + this.#claiming.size === 0;
  }

  /** Whether callers wait, and have to go on waiting as far as is known. */
  get isCrowded(): boolean {
    return this.#watcher !== undefined || this.waiters.length > this.#agents;
  }

  /**
   * Whether others of this process are ahead of a try. A claim that nobody needs any more is not: its caller will not have the lock,
   * and it may never be sent.
   */
  get isAheadOfTries(): boolean {
    if (this.isCrowded) return true;
    if (!this.isFull) return false;
    const needed = [...this.#claiming].filter(({ endSignal }) => !endSignal.aborted);
    // Nor is a lease that has run out while it was released: a process may have been frozen after the end of its section.
    const leases = [...this.leases].filter(({ lease }) => !lease.hasRunOut);
    return leases.length + needed.length >= this.capacity;
  }

  /** Whether a waiter has no agent and may have one. @param together see {@link newAgent}. */
  needsAgent(together: boolean): boolean {
    const without = this.waiters.length - this.#agents;
    if (without === 0 || this.isFull) return false;
    return this.#agents === 0 || (together && without === 1 && this.#watcher === undefined);
  }

  /** Whether this process leaves the lock to others at present. */
  get isOthersTurn(): boolean {
    return this.#session.contention?.othersTurnOf(this.resource.at) !== undefined;
  }

  /** Who has the lock, as this process knows it: from its own latest lease, or from the row that an agent or a try has seen. */
  get holder(): LockInfo | undefined {
    // Each waiting call asks for it again and again, so the latest is looked for once after it has changed.
    if (this.#latest === undefined || !this.leases.has(this.#latest)) this.#latest = [...this.leases].at(-1);
    return this.#latest?.lease.info ?? this.#watcher?.seen ?? this.#asking?.seen;
  }

  /** The last agent or try that has asked the table. */
  get asking(): Agent | undefined {
    return this.#asking;
  }

  /** How far the asking for a caller has come. A caller without an agent shares what another one of its process has sent. */
  progressOf(agent: Agent | undefined): Progress | undefined {
    const shared = this.#watcher ?? this.#asking;
    const asking = agent ?? (this.leases.size < this.capacity ? shared : undefined);
    return asking !== undefined && this.#claiming.has(asking) ? asking : undefined;
  }

  /** A call, whose `waitMs` has passed, goes on until the next {@link review}, which may end it. */
  addOverdue(call: Call<unknown>): void {
    if (this.#overdue.has(call) || call.isSettled) return;
    this.#overdue.add(call);
    call.atEnd(() => this.#overdue.delete(call));
  }

  /** Resolves at the next {@link review}. */
  reviewed(): Promise<void> {
    return new Promise((resolve) => this.#curious.push(resolve));
  }

  /** Something has come of what this process has sent: it counts for all callers whose `waitMs` has passed. */
  review(): void {
    for (const call of [...this.#overdue]) call.review();
    for (const tell of this.#curious.splice(0)) tell();
  }

  add({ request, call, settle }: Waiter): Standing {
    this.#lastNumber += 1;
    const standing = { request, call, settle, number: this.#lastNumber, agent: undefined };
    this.waiters.push(standing);
    return standing;
  }

  /** A waiter goes: with the lock, or for the reason that it failed. */
  leave(waiter: Standing, failure: Failure | undefined): void {
    const index = this.#indexAfter(waiter.number - 1);
    if (this.waiters[index] !== waiter) return;
    this.waiters.splice(index, 1);
    const { agent } = waiter;
    if (agent === undefined) return;
    waiter.agent = undefined;
    this.#agents -= 1;
    // The pauses and the marks of a watcher count from when its waiter began to wait for others. A lease of this process has
    // passed to that waiter, so the next watcher begins anew.
    const isServed = failure === undefined && agent === this.#watcher;
    const next = isServed ? undefined : this.#firstWithoutAgent;
    if (next !== undefined) {
      this.#assign(agent, next);
      return;
    }
    if (this.#watcher === agent) this.#watcher = undefined;
    agent.end(failure === undefined ? NOBODY_WAITS : failure.reason);
    // Without its lock, its claim may still take one, which new calls would meet. With a lease of this process, nobody has to wait
    // for what the claim may take.
    if (failure === undefined) this.dismiss(agent);
  }

  /**
   * A new agent, for the first waiter that has none.
   * @param together whether it asks although other agents may ask as well. Otherwise it is the watcher from the beginning.
   */
  newAgent(together: boolean): Agent {
    const waiter = this.#firstWithoutAgent as Standing;
    const agent: Agent = new Wait<Waiter>(this.#session, waiter);
    agent.longestPauseMs = () => this.#longestPauseMs;
    this.#assign(agent, waiter);
    if (!together) this.#watcher = agent;
    this.enter(agent);
    return agent;
  }

  /** An agent or a try begins to ask. */
  enter(agent: Agent): void {
    this.#claiming.add(agent);
    this.#asking = agent;
    agent.onProgress = () => {
      agent.call.review();
      this.review();
    };
  }

  /** An agent or a try has its lease, or asks no longer. */
  dismiss(agent: Agent): void {
    this.#claiming.delete(agent);
    if (this.#watcher === agent) this.#watcher = undefined;
    const waiter = agent.asker as Partial<Standing>;
    if (waiter.agent !== agent) return;
    waiter.agent = undefined;
    this.#agents -= 1;
  }

  /** An agent has taken a lease. */
  keep(own: OwnLease): void {
    this.leases.add(own);
    this.#latest = own;
    this.blocked = undefined;
  }

  /**
   * Takes a lease for the agent's waiter, or joins one.
   *
   * 1. Try to take it. A refusal shows the row, so nothing needs to be read.
   * 2. Watch it until it looks free; go on with 1. A read is a hint: the conditional write decides.
   *
   * @returns undefined if another agent watches the lock.
   * @throws the store's error if it is not transient, or if the table never answered; what ended the wait.
   */
  async acquire(agent: Agent): Promise<OwnLease | undefined> {
    for (let seen: ClaimHow["seen"]; ; ) {
      if (this.isOthersTurn) await this.#turns.standBack(agent.asker.request.resource, agent);
      this.#asking = agent;
      const result = await this.claim(agent, { seen });
      if (result.kind === "granted") return result.granted;
      // One that looks free is claimed again at once.
      if (!result.inTheWay.every(({ target, row }) => looksFree(this.#session, target, row))) agent.waits();
      agent.endSignal.throwIfAborted();
      this.#watcher ??= agent;
      if (this.#watcher !== agent) return undefined;
      this.blocked ??= blockedFromNow(this.#session);
      const { resource } = agent.asker.request;
      seen = await resource.kind.watch(resource, result.inTheWay, agent, this.blocked);
    }
  }

  /** One try. It is refused if anybody is ahead. */
  tryAcquire(agent: Agent): Promise<TryOutcome> {
    return tryClaim(this.#session, agent, () => this.claim(agent));
  }

  /** Whether a lease whose section has ended may pass to the first waiter. @param until how long it may be asked, on `atMost`. */
  mayPass(own: OwnLease, until: number): boolean | Promise<boolean> {
    return this.#turns.mayPass(own, until);
  }

  /** Whether the first waiter may go on with a lease of this process. */
  get admitsFirst(): boolean {
    return true;
  }

  /** Called when a waiter has come, or has got a lease. */
  changed(): void {
    // Nothing has to be drawn.
  }

  /** Gives up what no caller needs any more: an empty line is like a new one. @returns whether it is empty. */
  tidy(): boolean {
    if (!this.isEmpty) return false;
    this.blocked = undefined;
    this.capacity = 0;
    this.#latest = undefined;
    // The holder that it knows may be gone when the next caller comes.
    this.#asking = undefined;
    return true;
  }

  /** One claim, from the first copy to the last, in the context of the call that it is for. */
  claim(agent: Agent, how?: ClaimHow): Promise<Claimed<OwnLease>> {
    const { request, call } = agent.asker;
    const open = (): OwnLease | undefined => [...this.leases].findLast((own) => fits(own, request));
    return call.inContext(() => request.resource.kind.claim({ ...how, request, wait: agent, open }));
  }

  /** The first waiter whose number is greater than this. */
  firstAfter(number: number): Standing | undefined {
    return this.waiters[this.#indexAfter(number)];
  }

  /** How many waiters have a number greater than this. */
  countAfter(number: number): number {
    return this.waiters.length - this.#indexAfter(number);
  }

  /** How many permits of a semaphore they need in all. */
  weightAfter(number: number): number {
    const after = this.waiters.slice(this.#indexAfter(number));
    return after.reduce((sum, { request }) => sum + request.resource.weight, 0);
  }

  get #firstWithoutAgent(): Standing | undefined {
    return this.waiters.find(({ agent }) => agent === undefined);
  }

  /** The watcher looks as often as the waiter with the shortest poll would. */
  get #longestPauseMs(): number {
    let leastMs = Number.POSITIVE_INFINITY;
    for (const { request } of this.waiters) leastMs = Math.min(leastMs, request.resource.settings.poll.maxMs);
    return leastMs;
  }

  #assign(agent: Agent, waiter: Standing): void {
    agent.asker = waiter;
    waiter.agent = agent;
    this.#agents += 1;
  }

  /** The index of the first waiter with a greater number. */
  #indexAfter(number: number): number {
    let [low, high] = [0, this.waiters.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.waiters[middle] as Standing).number > number) high = middle;
      else low = middle + 1;
    }
    return low;
  }
}
