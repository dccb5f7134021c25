import { wasApplied } from "../../lib/protocol/was-applied.js";
import type { Check, Renew, Take, Transfer, Vacate } from "../../lib/protocol/writes.js";
import { applies, type Switch, uuidOn } from "./switch.js";
import { atLeastAt, atMostAt } from "./time.js";

export const MUTEX_SWITCHES: readonly Switch[] = [
  {
    name: "a takeover is judged by `latest`",
    stage: "leases",
    more: { ticks: 1, widths: [0, 2] },
    breaks: "an ended uuid stays ended",
    off: { boundsToJudgeBy: ({ latest }) => ({ earliest: latest, latest }) },
  },
  {
    name: "a take replaces any row",
    stage: "leases",
    more: { ticks: 0 },
    breaks: "an ended uuid stays ended",
    off: applies<Take>("take", (write) => ({ write: { ...write, knowledge: { earliest: Number.MAX_SAFE_INTEGER } } })),
  },
  {
    name: "a take admits its own uuid",
    stage: "leases",
    more: { ticks: 0, renewals: [1, 0], lateCopies: 1 },
    breaks: "expires never moves back under one uuid",
    off: applies<Take>("take", (write, row) => {
      if (row.uuid !== write.uuid) return {};
      const unchanged = { uuid: write.uuid, expires: Number(row.expires) };
      return { write: { ...write, knowledge: { ...write.knowledge, unchanged } } };
    }),
  },
  {
    name: "a take by watching names the uuid alone",
    stage: "leases",
    more: { ticks: 2, renewals: [1, 0] },
    breaks: "one holder",
    off: applies<Take>("take", (write, row) => {
      const { unchanged } = write.knowledge;
      if (unchanged?.uuid === undefined || unchanged.uuid !== row.uuid) return {};
      return {
        write: {
          ...write,
          knowledge: { ...write.knowledge, unchanged: { ...unchanged, expires: Number(row.expires) } },
        },
      };
    }),
  },
  {
    name: "a lease counts from the reply",
    stage: "leases",
    more: { ticks: 2, widths: [0, 2] },
    breaks: "an ended uuid stays ended",
    off: {
      leaseEnd: ({ expires, ttlMs, bounds, atMost }) => atMost + Math.min(ttlMs, expires - (bounds?.latest ?? expires)),
    },
  },
  {
    name: "a lease counts from the last copy",
    stage: "leases",
    more: { ticks: 2, widths: [0, 2] },
    breaks: "an ended uuid stays ended",
    off: { countsFrom: "last copy" },
  },
  {
    name: "a lease lasts as long as its stamp says",
    stage: "leases",
    more: { ticks: 2, widths: [0, 2] },
    breaks: "an ended uuid stays ended",
    off: { leaseEnd: ({ expires, bounds, atMost }) => atMost + (expires - (bounds?.latest ?? expires)) },
  },
  {
    name: "a renewal counts before it is answered",
    stage: "leases",
    more: { ticks: 2, renewals: [1, 0] },
    breaks: "one holder",
    off: { countsUnanswered: true },
  },
  {
    name: "a renewal may move `expires` back",
    stage: "leases",
    more: { ticks: 0, renewals: [2, 0], lateCopies: 1 },
    breaks: "expires never moves back under one uuid",
    off: applies<Renew>("renew", (_, row) => ({ row: { ...row, expires: 0 } })),
  },
  {
    name: "a release asks for no uuid",
    stage: "restarts",
    more: { ticks: 0, lateCopies: 1 },
    breaks: "an ended uuid stays ended",
    off: applies<Vacate>("vacate", (write, row) => ({ write: { ...write, uuid: uuidOn(row, write.uuid) } })),
  },
  {
    name: "a uuid names a process and not one acquisition",
    stage: "restarts",
    more: { ticks: 0 },
    breaks: "an ended uuid stays ended",
    off: { uuidOf: (name) => name },
  },
  {
    name: "`wasApplied` says always yes",
    stage: "leases",
    more: { ticks: 0 },
    breaks: "one holder",
    off: { wasApplied: () => "yes" },
  },
  {
    name: "`wasApplied` says always no",
    stage: "leases",
    more: { ticks: 0 },
    breaks: "an own write is recognised",
    off: { wasApplied: () => "no" },
  },
  {
    name: "a release that is refused after a lost reply counts as a loss",
    stage: "leases",
    more: { ticks: 0 },
    breaks: "a release tells the truth",
    off: { wasApplied: (write, row, copies) => (write.kind === "vacate" ? "no" : wasApplied(write, row, copies)) },
  },
  {
    name: "a watcher counts from the request",
    stage: "leases",
    more: { ticks: 2 },
    breaks: "an ended uuid stays ended",
    off: { seenSince: "request" },
  },
  {
    name: "a watcher waits for its own ttl",
    stage: "clocks",
    more: { ticks: 2, suspends: 0, jumps: 1 },
    breaks: "an ended uuid stays ended",
    off: { watchedTtl: (_, own) => own },
  },
  {
    name: "a watcher counts on `atMost`",
    stage: "clocks",
    more: { ticks: 2, suspends: 0, jumps: 1 },
    breaks: "an ended uuid stays ended",
    off: { watcherWatch: atMostAt },
  },
  {
    name: "a lease counts on `atLeast`",
    stage: "clocks",
    more: { ticks: 3, suspends: 2 },
    breaks: "one holder",
    off: { leaseWatch: atLeastAt },
  },
  {
    name: "the safety margin is 0",
    stage: "leases",
    more: { ticks: 2 },
    breaks: "one holder",
    off: { marginMs: () => 0 },
  },
  {
    name: "a guard asks for no later stamp",
    stage: "guards",
    more: { ticks: 0, takes: [1, 0] },
    breaks: "a guard commits for its section alone",
    off: applies<Check>("check", (write) => ({ write: { ...write, after: 0 } })),
  },
  {
    name: "a guard is sent before the first renewal",
    stage: "guards",
    more: { ticks: 0, takes: [1, 0] },
    breaks: "a guard commits for its section alone",
    off: { guardsAfterRenewal: false },
  },
  {
    name: "a guard asks for no token",
    stage: "fenced guards",
    more: { ticks: 0, takes: [1, 0], lateCopies: 3 },
    breaks: "a guard commits for its section alone",
    off: applies<Check>("check", (write) => ({ write: { ...write, fence: undefined } })),
  },
  {
    name: "a lease is passed on after a guard without a new uuid",
    stage: "guards",
    more: { ticks: 0, takes: [1, 0] },
    breaks: "a guard commits for its section alone",
    off: { reissuesAfterGuard: false },
  },
  {
    name: "a reissue asks for no uuid",
    stage: "guards",
    more: { ticks: 0, takes: [2, 1] },
    breaks: "an ended uuid stays ended",
    off: applies<Transfer>("reissue", (write, row) => ({ write: { ...write, from: uuidOn(row, write.from) } })),
  },
];
