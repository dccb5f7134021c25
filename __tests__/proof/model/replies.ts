import type { Renew, Take, Transfer, Vacate } from "../../../lib/protocol/writes.js";
import { lost, overdue, stands } from "./deadline.js";
import { isShared } from "./limits.js";
import { beginsSection } from "./section.js";
import {
  type Answer,
  type Claimant,
  claimantOf,
  type Lease,
  type Request,
  type State,
  type Who,
  withClaimant,
} from "./state.js";
import type { Invariant, Meaning, Model, Step } from "./step.js";
import { boundsAt } from "./time.js";
import { noted, rowOf } from "./watching.js";

/** The reply to a request of a claimant arrives: what `lib/taking/` makes of it. */
export function replies(model: Model, state: State, who: Who, steps: Step[]): void {
  const { request } = claimantOf(state, who);
  if (request?.answer === undefined) return;
  const hearing = new Hearing(model, state, who, request, request.answer, steps);
  const { write } = request.message;
  switch (write.kind) {
    case "take":
      hearing.take(write);
      break;
    case "renew":
      hearing.renew(write);
      break;
    case "reissue":
      hearing.reissue(write);
      break;
    case "vacate":
      hearing.vacate(write);
      break;
    case "transfer":
      hearing.transfer(write);
      break;
    case "remove":
    case "check":
      throw new Error(`Nobody waits for the answer to a ${write.kind}`);
    default:
      write satisfies never;
  }
}

class Hearing {
  readonly #model: Model;
  readonly #state: State;
  readonly #who: Who;
  readonly #request: Request;
  readonly #answer: Answer;
  readonly #steps: Step[];
  /** Its request is over. */
  readonly #claimant: Claimant;

  constructor(model: Model, state: State, who: Who, request: Request, answer: Answer, steps: Step[]) {
    this.#model = model;
    this.#state = state;
    this.#who = who;
    this.#request = request;
    this.#answer = answer;
    this.#steps = steps;
    this.#claimant = { ...claimantOf(state, who), request: undefined };
  }

  take(write: Take): void {
    const { rules, limits } = this.#model;
    if (this.#wasApplied) {
      const { uuid, expires } = write;
      const stamps = { firstStamp: expires, expires, lastStamp: expires };
      const fence = limits.fenced ? this.#fence : undefined;
      this.#begins({ uuid, fence, ...stamps, end: 0, section: 0, enters: false, guarded: false });
      return;
    }
    const isOwn = this.#by?.uuid === write.uuid;
    const { seen, host, taken } = this.#claimant;
    const atMs = rules.watcherWatch(this.#state.time, this.#claimant);
    const watches = taken < (limits.takes[this.#who] ?? 0);
    const after = { ...this.#claimant, seen: watches ? noted(seen, write.at, this.#by, { atMs, host }, rules) : [] };
    this.#hears("somebody else has it", after, isOwn ? "an own write is recognised" : undefined);
  }

  renew(write: Renew): void {
    const { lease } = this.#claimant;
    if (lease === undefined) return;
    const { uuid, expires } = write;
    if (this.#wasApplied) {
      for (const end of this.#ends(expires)) {
        this.#hears("renewed", { ...this.#claimant, lease: { ...lease, expires, end } });
      }
      return;
    }
    const isOwn = this.#by?.uuid === uuid;
    const broken = isOwn && this.#by?.expires === expires ? "an own write is recognised" : undefined;
    // With its own uuid on the row, the old deadline still stands.
    if (isOwn) this.#hears("unknown", this.#claimant, broken);
    else this.#hears("lost", { ...this.#claimant, lease: undefined });
  }

  reissue(write: Transfer): void {
    const { lease } = this.#claimant;
    if (lease === undefined) return;
    const { uuid, expires, token } = write;
    if (this.#wasApplied) {
      const fence = token ? this.#fence : lease.fence;
      const stamps = { firstStamp: expires, expires, lastStamp: expires };
      const next = { ...lease, uuid, fence, ...stamps };
      if (lease.end > 0) this.#begins(next, { isPassedOn: true });
      else this.#hears("too late for a section", lost({ ...this.#claimant, lease: next }));
      return;
    }
    const broken = this.#by?.uuid === uuid ? "an own write is recognised" : undefined;
    this.#hears("lost", { ...this.#claimant, lease: undefined }, broken);
  }

  /** A hand-off, where it has a lease to hand off; else it resumes one. */
  transfer(write: Transfer): void {
    const { uuid, from, expires } = write;
    const isHandOff = this.#claimant.lease !== undefined;
    const after = { ...this.#claimant, lease: undefined };
    if (!this.#wasApplied) {
      const broken = this.#by?.uuid === uuid ? "an own write is recognised" : undefined;
      this.#hears(isHandOff ? "lost" : "the token is spent", after, broken);
    } else if (isHandOff) {
      const next = withClaimant(this.#state, this.#who, after);
      this.#pushes("handed off", { ...next, tokens: [...this.#state.tokens, uuid].sort() });
    } else {
      const stamps = { firstStamp: expires, expires, lastStamp: expires };
      const fence = write.token ? this.#fence : undefined;
      this.#begins({ uuid, fence, ...stamps, end: 0, section: 0, enters: false, guarded: false }, { token: from });
    }
  }

  vacate(_write: Vacate): void {
    const isReleased = this.#answer.kind === "applied" || this.#verdict !== "no";
    const broken = !isReleased && this.#request.applied ? "a release tells the truth" : undefined;
    this.#hears(isReleased ? "released" : "a loss is reported", this.#claimant, broken);
  }

  /** The next section begins on the lease, if enough of it is left. */
  #begins(lease: Lease, { token, isPassedOn }: { token?: string; isPassedOn?: boolean } = {}): void {
    const { host, seen } = this.#claimant;
    const looksFirst = isShared(host.side) && !isPassedOn;
    for (const end of this.#ends(lease.expires)) {
      const taken = { ...lease, end };
      const after = { ...this.#claimant, seen: looksFirst ? seen : [], lease: { ...taken, enters: looksFirst } };
      const isOver = !stands(this.#model, this.#state.time, after);
      if (looksFirst) {
        this.#hears("its flag stands", after);
      } else if (isOver) {
        this.#hears("too late for a section", lost(after));
      } else {
        const from = withClaimant(this.#state, this.#who, after);
        const { next, broken } = beginsSection(this.#model, from, this.#who, taken, token);
        this.#pushes("a section begins", next, broken);
      }
    }
  }

  /** Until when the lease may be relied on, for each of the bounds that the clock may show now. */
  #ends(expires: number): readonly number[] {
    const { rules, limits } = this.#model;
    const { time } = this.#state;
    const { ttlMs } = this.#claimant.host;
    const atMost = rules.leaseWatch(time, this.#claimant);
    const stamped = { expires, ttlMs, sentAt: this.#request.sentAt, atMost };
    return limits.widths.map((width) => rules.leaseEnd({ ...stamped, bounds: boundsAt(time, width) }));
  }

  #hears(meaning: Meaning, after: Claimant, broken?: Invariant): void {
    this.#pushes(meaning, withClaimant(this.#state, this.#who, after), broken);
  }

  #pushes(meaning: Meaning, next: State, broken?: Invariant): void {
    const { message } = this.#request;
    this.#steps.push({ what: meaning, who: this.#who, message, next: overdue(this.#model, next), broken });
  }

  get #wasApplied(): boolean {
    return this.#answer.kind === "applied" || this.#verdict === "yes";
  }

  get #verdict(): "yes" | "no" | "maybe" {
    const { message, repeated } = this.#request;
    return this.#model.rules.wasApplied(message.write, rowOf(this.#by), { earlierCopyUnanswered: repeated });
  }

  /** The row that has refused, if any. */
  get #by() {
    return this.#answer.kind === "refused" ? this.#answer.by : undefined;
  }

  get #fence(): bigint | undefined {
    return this.#answer.kind === "applied" ? this.#answer.drawn : rowOf(this.#by)?.fence;
  }
}
