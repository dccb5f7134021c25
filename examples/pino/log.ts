import { subscribe } from "node:diagnostics_channel";
import { type Diagnostics, LockTable } from "dynamutex";
import { pino } from "pino";

const logger = pino({ name: "locks", level: process.env.LOG_LEVEL ?? "info" });

const LEVELS: Record<keyof Diagnostics, "error" | "warn" | "info" | "debug" | "trace"> = {
  "dynamutex:lost": "error",
  "dynamutex:failed": "error",
  "dynamutex:stuck": "error",
  "dynamutex:permits-differ": "error",
  "dynamutex:blocked": "warn",
  "dynamutex:one-by-one": "info",
  "dynamutex:renewal-failed": "warn",
  "dynamutex:release-failed": "warn",
  "dynamutex:not-shared": "warn",
  "dynamutex:not-recorded": "warn",
  "dynamutex:wait-failed": "warn",
  "dynamutex:ticket-lost": "warn",
  "dynamutex:clock": "warn",
  "dynamutex:forced": "warn",
  "dynamutex:missed": "info",
  "dynamutex:election": "info",
  "dynamutex:acquired": "info",
  "dynamutex:released": "info",
  "dynamutex:asked": "debug",
  "dynamutex:renewed": "debug",
  "dynamutex:wanted": "debug",
  "dynamutex:request": "trace",
};

for (const [channel, level] of Object.entries(LEVELS)) {
  // Nothing is built for a channel without a listener.
  if (!logger.isLevelEnabled(level)) continue;
  subscribe(channel, (message) => {
    const { name: lock, cause, ...rest } = message as { readonly name?: string; readonly cause?: unknown };
    logger[level]({ lock, ...rest, ...(cause === undefined ? {} : { err: cause }) }, channel);
  });
}

await using locks = new LockTable({ tableName: "locks" });
await locks.mutex("nightly-report").run(() => undefined);
