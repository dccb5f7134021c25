import { type ChannelListener, subscribe, unsubscribe } from "node:diagnostics_channel";
import { LOSS } from "../errors.js";
import type { Diagnostics } from "../index.js";
import type { Labels } from "./labels.js";
import type { Attributes, Instruments } from "./metrics.js";

/** What is done with the messages of each channel. */
export type Listeners = { readonly [Name in keyof Diagnostics]?: (message: Diagnostics[Name]) => void };

/** Subscribes them to their channels. @returns what ends that. */
export function subscribeAll(...all: readonly Listeners[]): () => void {
  const listeners = all.flatMap((some) => Object.entries(some) as [string, ChannelListener][]);
  for (const [channel, listener] of listeners) subscribe(channel, listener);
  return () => {
    for (const [channel, listener] of listeners) unsubscribe(channel, listener);
  };
}

/** Counts the requests to the table, and what they cost. */
export function countRequests(instruments: Instruments, labels: Labels): Listeners {
  const { requests, requestDuration, capacityUnits } = instruments;
  return {
    "dynamutex:request": ({ operation, name, ms, outcome, readUnits, writeUnits }) => {
      const attributes = { "dynamutex.operation": operation, ...labels(name) };
      requests(1, { ...attributes, "dynamutex.outcome": outcome });
      requestDuration(ms / 1_000, { ...attributes, "dynamutex.outcome": outcome });
      if (readUnits) capacityUnits(readUnits, { ...attributes, "dynamutex.capacity.kind": "read" });
      if (writeUnits) capacityUnits(writeUnits, { ...attributes, "dynamutex.capacity.kind": "write" });
    },
  };
}

/** The channels on which nothing is told of a section that goes well. */
const WARNINGS: readonly (keyof Diagnostics)[] = [
  "dynamutex:blocked",
  "dynamutex:stuck",
  "dynamutex:renewal-failed",
  "dynamutex:release-failed",
  "dynamutex:not-shared",
  "dynamutex:not-recorded",
  "dynamutex:wait-failed",
  "dynamutex:ticket-lost",
  "dynamutex:permits-differ",
  "dynamutex:forced",
  "dynamutex:clock",
];

/** A channel's name, as an attribute. */
const eventOf = (channel: string) => ({ "dynamutex.event": channel.slice("dynamutex:".length) });

/** Counts what the other channels tell. */
export function countWarnings({ warnings }: Instruments, labels: Labels): Listeners {
  const count = (channel: string) => (message: { readonly name?: string }) =>
    warnings(1, { ...eventOf(channel), ...labels(message.name) });
  return Object.fromEntries(WARNINGS.map((channel) => [channel, count(channel)]));
}

type Failure = Diagnostics["dynamutex:failed"]["reason"];

const FAILURES: Readonly<Record<Failure, Attributes>> = {
  aborted: {},
  closed: {},
  error: { "error.type": "LOCK_STORE" },
};

type Takeover = NonNullable<Diagnostics["dynamutex:acquired"]["takeover"]>;
const TAKEOVERS: Readonly<Record<Takeover, true>> = { expired: true, unchanged: true };

type Operation = Diagnostics["dynamutex:request"]["operation"];
const OPERATIONS: Readonly<Record<Operation, true>> = {
  take: true,
  "take-all": true,
  renew: true,
  "renew-all": true,
  reissue: true,
  transfer: true,
  release: true,
  record: true,
  remove: true,
  mark: true,
  draw: true,
  check: true,
  "put-result": true,
  read: true,
  query: true,
  scan: true,
  transact: true,
};

/**
 * Lets the counters that alarms look at begin at 0. One that is not there before the first loss is 1 when it is first seen, and
 * whoever asks by how much it has grown since is told: by nothing.
 */
export function startAtZero({ calls, waiting, losses, failures, takeovers, warnings, requests }: Instruments): void {
  calls(0);
  waiting(0);
  for (const reason of Object.keys(LOSS)) losses(0, { "dynamutex.reason": reason });
  for (const [reason, type] of Object.entries(FAILURES)) failures(0, { "dynamutex.reason": reason, ...type });
  for (const takeover of Object.keys(TAKEOVERS)) takeovers(0, { "dynamutex.takeover": takeover });
  for (const channel of WARNINGS) warnings(0, eventOf(channel));
  for (const operation of Object.keys(OPERATIONS)) {
    const attributes = { "dynamutex.operation": operation };
    for (const outcome of ["throttled", "unanswered"]) requests(0, { ...attributes, "dynamutex.outcome": outcome });
  }
}
