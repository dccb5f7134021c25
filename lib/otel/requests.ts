import type { Diagnostics } from "../index.js";
import type { Instruments } from "./instruments.js";
import type { Labels } from "./labels.js";
import type { Listening } from "./listening.js";

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
export const WARNINGS: readonly (keyof Diagnostics)[] = [
  "dynamutex:stuck",
  "dynamutex:renewal-failed",
  "dynamutex:release-failed",
  "dynamutex:wait-failed",
  "dynamutex:ticket-lost",
  "dynamutex:permits-differ",
  "dynamutex:forced",
  "dynamutex:clock",
];

/** A channel's name, as an attribute. */
export const eventOf = (channel: string): string => channel.slice("dynamutex:".length);

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
