import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { LOSS } from "../errors.js";
import type { Diagnostics } from "../index.js";
import type { Instruments, Labels } from "./instruments.js";

/** Subscriptions that end together. */
export class Listening {
  readonly #ends: (() => void)[] = [];

  on<Name extends keyof Diagnostics>(channel: Name, hear: (message: Diagnostics[Name]) => void): void {
    const listener = (message: unknown): void => hear(message as Diagnostics[Name]);
    subscribe(channel, listener);
    this.#ends.push(() => unsubscribe(channel, listener));
  }

  end(): void {
    for (const end of this.#ends.splice(0)) end();
  }
}

/** Counts the requests to the table, and what they cost. */
export function countRequests(listening: Listening, instruments: Instruments, labels: Labels): void {
  const { requests, requestDuration, capacityUnits } = instruments;
  listening.on("dynamutex:request", ({ operation, name, ms, outcome, readUnits, writeUnits }) => {
    const attributes = { "dynamutex.operation": operation, ...labels(name) };
    requests.add(1, { ...attributes, "dynamutex.outcome": outcome });
    requestDuration.record(ms / 1_000, { ...attributes, "dynamutex.outcome": outcome });
    if (readUnits) capacityUnits.add(readUnits, { ...attributes, "dynamutex.capacity.kind": "read" });
    if (writeUnits) capacityUnits.add(writeUnits, { ...attributes, "dynamutex.capacity.kind": "write" });
  });
}

/** The channels on which nothing is told of a section that goes well. */
const WARNINGS: readonly (keyof Diagnostics)[] = [
  "dynamutex:stuck",
  "dynamutex:renewal-failed",
  "dynamutex:release-failed",
  "dynamutex:not-shared",
  "dynamutex:wait-failed",
  "dynamutex:ticket-lost",
  "dynamutex:permits-differ",
  "dynamutex:forced",
  "dynamutex:clock",
];

/** A channel's name, as an attribute. */
const eventOf = (channel: string): string => channel.slice("dynamutex:".length);

/** Counts what the other channels tell. */
export function countWarnings(listening: Listening, { warnings }: Instruments, labels: Labels): void {
  for (const channel of WARNINGS) {
    const event = eventOf(channel);
    listening.on(channel, (message) => {
      const name = "name" in message ? message.name : undefined;
      warnings.add(1, { "dynamutex.event": event, ...labels(name) });
    });
  }
}

type Failure = Diagnostics["dynamutex:failed"]["because"];

const FAILURES: Readonly<Record<Failure, object>> = { aborted: {}, closed: {}, error: { "error.type": "LOCK_STORE" } };

/**
 * Lets the counters that alarms look at begin at 0. One that is not there before the first loss is 1 when it is first seen, and
 * whoever asks by how much it has grown since is told: by nothing.
 */
export function startAtZero({ losses, failures, warnings }: Instruments): void {
  for (const reason of Object.keys(LOSS)) losses.add(0, { "dynamutex.reason": reason });
  for (const [because, type] of Object.entries(FAILURES)) failures.add(0, { "dynamutex.because": because, ...type });
  for (const channel of WARNINGS) warnings.add(0, { "dynamutex.event": eventOf(channel) });
}
