import { wasApplied } from "../../../lib/protocol/was-applied.js";
import type { Check, Renew, Take, Transfer, Vacate } from "../../../lib/protocol/writes.js";
import { applies, type ClaimantSwitches, uuidOn } from "./switch.js";
import { atLeastAt, atMostAt } from "./time.js";

export const MUTEX_SWITCHES: ClaimantSwitches = {
  leases: {
    "a takeover is judged by `latest`": {
      more: { ticks: 1, widths: [0, 2] },
      breaks: "an ended uuid stays ended",
      off: { boundsToJudgeBy: ({ latest }) => ({ earliest: latest, latest }) },
    },
    "a take replaces any row": {
      more: { ticks: 0 },
      breaks: "an ended uuid stays ended",
      off: applies<Take>("take", (write) => ({
        write: { ...write, knowledge: { earliest: Number.MAX_SAFE_INTEGER } },
      })),
    },
    "a take admits its own uuid": {
      more: { ticks: 0, renewals: [1, 0], lateCopies: 1 },
      breaks: "expires never moves back under one uuid",
      off: applies<Take>("take", (write, row) => {
        if (row.uuid !== write.uuid) return {};
        const unchanged = { uuid: write.uuid, expires: Number(row.expires) };
        return { write: { ...write, knowledge: { ...write.knowledge, unchanged } } };
      }),
    },
    "a take by watching names the uuid alone": {
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
    "a lease counts from the reply": {
      more: { ticks: 2, widths: [0, 2] },
      breaks: "an ended uuid stays ended",
      off: {
        leaseEnd: ({ expires, ttlMs, bounds, atMost }) =>
          atMost + Math.min(ttlMs, expires - (bounds?.latest ?? expires)),
      },
    },
    "a lease counts from the last copy": {
      more: { ticks: 2, widths: [0, 2] },
      breaks: "an ended uuid stays ended",
      off: { countsFrom: "last copy" },
    },
    "a lease lasts as long as its stamp says": {
      more: { ticks: 2, widths: [0, 2] },
      breaks: "an ended uuid stays ended",
      off: { leaseEnd: ({ expires, bounds, atMost }) => atMost + (expires - (bounds?.latest ?? expires)) },
    },
    "a renewal counts before it is answered": {
      more: { ticks: 2, renewals: [1, 0] },
      breaks: "one holder",
      off: { countsUnanswered: true },
    },
    "a renewal may move `expires` back": {
      more: { ticks: 0, renewals: [2, 0], lateCopies: 1 },
      breaks: "expires never moves back under one uuid",
      off: applies<Renew>("renew", (_, row) => ({ row: { ...row, expires: 0 } })),
    },
    "`wasApplied` says always yes": {
      more: { ticks: 0 },
      breaks: "one holder",
      off: { wasApplied: () => "yes" },
    },
    "`wasApplied` says always no": {
      more: { ticks: 0 },
      breaks: "an own write is recognised",
      off: { wasApplied: () => "no" },
    },
    "a release that is refused after a lost reply counts as a loss": {
      more: { ticks: 0 },
      breaks: "a release tells the truth",
      off: { wasApplied: (write, row, copies) => (write.kind === "vacate" ? "no" : wasApplied(write, row, copies)) },
    },
    "a watcher counts from the request": {
      more: { ticks: 2 },
      breaks: "an ended uuid stays ended",
      off: { seenSince: "request" },
    },
    "the safety margin is 0": {
      more: { ticks: 2 },
      breaks: "one holder",
      off: { marginMs: () => 0 },
    },
  },
  restarts: {
    "a release asks for no uuid": {
      more: { ticks: 0, lateCopies: 1 },
      breaks: "an ended uuid stays ended",
      off: applies<Vacate>("vacate", (write, row) => ({ write: { ...write, uuid: uuidOn(row, write.uuid) } })),
    },
    "a uuid names a process and not one acquisition": {
      more: { ticks: 0 },
      breaks: "an ended uuid stays ended",
      off: { uuidOf: (name) => name },
    },
  },
  clocks: {
    "a watcher waits for its own ttl": {
      more: { ticks: 2, suspends: 0, jumps: 1 },
      breaks: "an ended uuid stays ended",
      off: { watchedTtl: (_, own) => own },
    },
    "a watcher counts on `atMost`": {
      more: { ticks: 2, suspends: 0, jumps: 1 },
      breaks: "an ended uuid stays ended",
      off: { watcherWatch: atMostAt },
    },
    "a lease counts on `atLeast`": {
      more: { ticks: 3, suspends: 2 },
      breaks: "one holder",
      off: { leaseWatch: atLeastAt },
    },
  },
  permits: {
    "a host knows of one permit more": {
      more: { crashes: 0, lateCopies: 0, losses: false },
      breaks: "no more holders than permits",
      off: { permitsOf: (permits) => permits + 1 },
    },
    "a take replaces whoever has its permit": {
      more: { lateCopies: 0 },
      breaks: "an ended uuid stays ended",
      off: applies<Take>("take", (write) => ({
        write: { ...write, knowledge: { earliest: Number.MAX_SAFE_INTEGER } },
      })),
    },
    "a release of a permit asks for no uuid": {
      more: { crashes: 0, losses: false },
      breaks: "an ended uuid stays ended",
      off: applies<Vacate>("vacate", (write, row) => ({ write: { ...write, uuid: uuidOn(row, write.uuid) } })),
    },
  },
  "leases of permits": {
    "a takeover of a permit is judged by `latest`": {
      breaks: "an ended uuid stays ended",
      off: { boundsToJudgeBy: ({ latest }) => ({ earliest: latest, latest }) },
    },
  },
  guards: {
    "a guard asks for no later stamp": {
      more: { ticks: 0, takes: [1, 0] },
      breaks: "a guard commits for its section alone",
      off: applies<Check>("check", (write) => ({ write: { ...write, after: 0 } })),
    },
    "a guard is sent before the first renewal": {
      more: { ticks: 0, takes: [1, 0] },
      breaks: "a guard commits for its section alone",
      off: { guardsAfterRenewal: false },
    },
    "a lease is passed on after a guard without a new uuid": {
      more: { ticks: 0, takes: [1, 0] },
      breaks: "a guard commits for its section alone",
      off: { reissuesAfterGuard: false },
    },
    "a reissue asks for no uuid": {
      more: { ticks: 0, takes: [2, 1] },
      breaks: "an ended uuid stays ended",
      off: applies<Transfer>("reissue", (write, row) => ({ write: { ...write, from: uuidOn(row, write.from) } })),
    },
  },
  "fenced guards": {
    "a guard asks for no token": {
      more: { ticks: 0, takes: [1, 0], lateCopies: 3 },
      breaks: "a guard commits for its section alone",
      off: applies<Check>("check", (write) => ({ write: { ...write, fence: undefined } })),
    },
  },
  "hand-offs": {
    "a hand-off asks for no later stamp": {
      more: { takes: [1, 0] },
      breaks: "a token is resumed once",
      off: applies<Transfer>("transfer", ({ after: _, ...write }) => ({ write })),
    },
    "who resumes asks for no uuid": {
      more: { takes: [1, 0], lateCopies: 0 },
      breaks: "an ended uuid stays ended",
      off: applies<Transfer>("transfer", (write, row) => ({ write: { ...write, from: uuidOn(row, write.from) } })),
    },
    "who resumes goes on with the uuid of the token": {
      more: { takes: [1, 0], lateCopies: 0 },
      breaks: "a token is resumed once",
      off: { resumedAs: (token) => token },
    },
  },
  "watched hand-offs": {
    "a token is the uuid that everybody sees": {
      more: { forges: true },
      breaks: "an ended uuid stays ended",
      off: { opens: (secret) => secret },
    },
    "a hand-off and who resumes it leave `ttlMs` as it was": {
      breaks: "an ended uuid stays ended",
      off: applies<Transfer>("transfer", (write, row) => ({ write: { ...write, ttlMs: Number(row.ttlMs) } })),
    },
  },
};
