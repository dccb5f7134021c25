import type { Message } from "../../support/message.js";
import type { Change } from "./network.js";
import { Watcher } from "./watcher.js";

/** A function that runs, or has run, under its lock, for all who share what it comes to. */
interface Flight {
  readonly uuid: string;
  readonly owner: string;
  readonly begunAt: number;
  /** When its release first named its result on the lock's row. */
  overAt: number | undefined;
}

/** A call for a flight's result. */
export interface FlightCall {
  readonly owner: string;
  readonly askedAt: number;
  readonly freshMs: number;
}

/** Sees to it that no call gets a result which was too old when it asked, or that does not count. */
export class FlightJudge extends Watcher {
  readonly #flights = new Map<string, Flight>();

  begins(uuid: string, owner: string): void {
    this.#flights.set(uuid, { uuid, owner, begunAt: this.now, overAt: undefined });
  }

  arrived(message: Message, { before, after }: Change): void {
    if (message.kind !== "write" || message.write.kind !== "vacate" || before?.uuid === undefined) return;
    const flight = this.#flights.get(before.uuid);
    if (flight !== undefined && after?.result?.id === flight.uuid) flight.overAt ??= this.now;
  }

  /** A call has the result of another. @returns what is wrong with that. */
  got({ owner, askedAt, freshMs }: FlightCall, uuid: string): string | undefined {
    const flight = this.#flights.get(uuid);
    if (flight === undefined) return `${uuid} is no flight`;
    // Within a process, the call that ran it has been told that it is over.
    if (flight.overAt === undefined && flight.owner !== owner) return `${uuid} has not ended with a result`;
    if (freshMs === 0) {
      const since = askedAt - (flight.overAt ?? Number.POSITIVE_INFINITY);
      return since > 0 ? `${uuid} was over for ${since} ms when the call began` : undefined;
    }
    const oldMs = askedAt - flight.begunAt;
    return oldMs > freshMs
      ? `${uuid} was ${oldMs} ms old when the call began, and at most ${freshMs} were asked for`
      : undefined;
  }
}
