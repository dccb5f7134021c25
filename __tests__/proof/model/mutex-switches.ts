import { wasApplied } from "../../../lib/protocol/was-applied.js";
import type { Check, Renew, Take, Transfer, Vacate } from "../../../lib/protocol/writes.js";
import { applies, type ClaimantSwitches, uuidOn } from "./switch.js";
import { atLeastAt, atMostAt } from "./time.js";

export const MUTEX_SWITCHES: ClaimantSwitches = {
  leases: {
    "a takeover is judged by `latest`": {
      takesOut: ["protocol#taking-over 1", "protocol#time"],
      more: { ticks: 1, widths: [0, 2] },
      breaks: "an ended uuid stays ended",
      off: { boundsToJudgeBy: ({ latest }) => ({ earliest: latest, latest }) },
    },
    "a take replaces any row": {
      takesOut: ["protocol#taking 2", "protocol#the-rows-states: held", "guarantees#one-holder"],
      more: { ticks: 0 },
      breaks: "an ended uuid stays ended",
      off: applies<Take>("take", (write) => ({
        write: { ...write, knowledge: { earliest: Number.MAX_SAFE_INTEGER } },
      })),
    },
    "a take admits its own uuid": {
      takesOut: ["protocol#taking 2", "protocol#late-copies: take, of a mutex"],
      more: { ticks: 0, renewals: [1, 0], lateCopies: 1 },
      breaks: "expires never moves back under one uuid",
      off: applies<Take>("take", (write, row) => {
        if (row.uuid !== write.uuid) return {};
        const unchanged = { uuid: write.uuid, expires: Number(row.expires) };
        return { write: { ...write, knowledge: { ...write.knowledge, unchanged } } };
      }),
    },
    "a take by watching names the uuid alone": {
      takesOut: ["protocol#taking-over 2", "protocol#late-copies: takeover of an unchanged row"],
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
      takesOut: ["trap 11", "protocol#keeping 3"],
      more: { ticks: 2, widths: [0, 2] },
      breaks: "an ended uuid stays ended",
      off: {
        leaseEnd: ({ expires, ttlMs, bounds, atMost }) =>
          atMost + Math.min(ttlMs, expires - (bounds?.latest ?? expires)),
      },
    },
    "a lease counts from the last copy": {
      takesOut: ["protocol#keeping 3"],
      more: { ticks: 2, widths: [0, 2] },
      breaks: "an ended uuid stays ended",
      off: { countsFrom: "last copy" },
    },
    "a lease lasts as long as its stamp says": {
      takesOut: ["protocol#keeping 3"],
      more: { ticks: 2, widths: [0, 2] },
      breaks: "an ended uuid stays ended",
      off: { leaseEnd: ({ expires, bounds, atMost }) => atMost + (expires - (bounds?.latest ?? expires)) },
    },
    "a renewal counts before it is answered": {
      takesOut: ["protocol#keeping 4"],
      more: { ticks: 2, renewals: [1, 0] },
      breaks: "one holder",
      off: { countsUnanswered: true },
    },
    "a renewal may move `expires` back": {
      takesOut: ["trap 19", "protocol#keeping 1", "protocol#late-copies: renewal"],
      more: { ticks: 0, renewals: [2, 0], lateCopies: 1 },
      breaks: "expires never moves back under one uuid",
      off: applies<Renew>("renew", (_, row) => ({ row: { ...row, expires: 0 } })),
    },
    "`wasApplied` says always yes": {
      takesOut: ["protocol#taking 3", "protocol#keeping 2"],
      more: { ticks: 0 },
      breaks: "one holder",
      off: { wasApplied: () => "yes" },
    },
    "`wasApplied` says always no": {
      takesOut: [
        "trap 1",
        "trap 2",
        "protocol#taking 3",
        "protocol#keeping 2",
        "guarantees#networks-and-crashes: A lost reply",
      ],
      more: { ticks: 0 },
      breaks: "an own write is recognised",
      off: { wasApplied: () => "no" },
    },
    "a release that is refused after a lost reply counts as a loss": {
      takesOut: ["trap 2", "protocol#releasing 3"],
      more: { ticks: 0 },
      breaks: "a release tells the truth",
      off: { wasApplied: (write, row, copies) => (write.kind === "vacate" ? "no" : wasApplied(write, row, copies)) },
    },
    "a watcher counts from the request": {
      takesOut: ["protocol#taking-over 2"],
      more: { ticks: 2 },
      breaks: "an ended uuid stays ended",
      off: { seenSince: "request" },
    },
    "the safety margin is 0": {
      takesOut: ["protocol#keeping 3", "guarantees#one-holder"],
      more: { ticks: 2 },
      breaks: "one holder",
      off: { marginMs: () => 0 },
    },
  },
  restarts: {
    "a release asks for no uuid": {
      takesOut: ["trap 9", "protocol#releasing 2", "protocol#late-copies: reissue, release, parking"],
      more: { ticks: 0, lateCopies: 1 },
      breaks: "an ended uuid stays ended",
      off: applies<Vacate>("vacate", (write, row) => ({ write: { ...write, uuid: uuidOn(row, write.uuid) } })),
    },
    "a uuid names a process and not one acquisition": {
      takesOut: ["protocol#taking 1"],
      more: { ticks: 0 },
      breaks: "an ended uuid stays ended",
      off: { uuidOf: (name) => name },
    },
  },
  clocks: {
    "a watcher waits for its own ttl": {
      takesOut: ["trap 8", "protocol#taking-over 2"],
      more: { ticks: 2, suspends: 0, jumps: 1 },
      breaks: "an ended uuid stays ended",
      off: { watchedTtl: (_, own) => own },
    },
    "a watcher counts on `atMost`": {
      takesOut: ["trap 22", "protocol#taking-over"],
      more: { ticks: 2, suspends: 0, jumps: 1 },
      breaks: "an ended uuid stays ended",
      off: { watcherWatch: atMostAt },
    },
    "a lease counts on `atLeast`": {
      takesOut: ["trap 22", "trap 16", "protocol#taking-over"],
      more: { ticks: 3, suspends: 2 },
      breaks: "one holder",
      off: { leaseWatch: atLeastAt },
    },
  },
  permits: {
    "a host knows of one permit more": {
      takesOut: ["protocol#semaphores", "semaphores#what-is-promised: At most permits"],
      more: { crashes: 0, lateCopies: 0, losses: false },
      breaks: "no more holders than permits",
      off: { permitsOf: (permits) => permits + 1 },
    },
    "a take replaces whoever has its permit": {
      takesOut: ["protocol#semaphores", "semaphores#what-is-promised: At most permits"],
      more: { lateCopies: 0 },
      breaks: "an ended uuid stays ended",
      off: applies<Take>("take", (write) => ({
        write: { ...write, knowledge: { earliest: Number.MAX_SAFE_INTEGER } },
      })),
    },
    "a release of a permit asks for no uuid": {
      takesOut: ["protocol#semaphores"],
      more: { crashes: 0, losses: false },
      breaks: "an ended uuid stays ended",
      off: applies<Vacate>("vacate", (write, row) => ({ write: { ...write, uuid: uuidOn(row, write.uuid) } })),
    },
  },
  "leases of permits": {
    "a takeover of a permit is judged by `latest`": {
      takesOut: ["protocol#semaphores"],
      breaks: "an ended uuid stays ended",
      off: { boundsToJudgeBy: ({ latest }) => ({ earliest: latest, latest }) },
    },
  },
  guards: {
    "a guard asks for no later stamp": {
      takesOut: [
        "fencing-and-guards#what-a-guard-asks: A late duplicate",
        "protocol#late-copies: a caller's transaction with a guard",
      ],
      more: { ticks: 0, takes: [1, 0] },
      breaks: "a guard commits for its section alone",
      off: applies<Check>("check", (write) => ({ write: { ...write, after: 0 } })),
    },
    "a guard is sent before the first renewal": {
      takesOut: ["fencing-and-guards#what-a-guard-asks: A late duplicate"],
      more: { ticks: 0, takes: [1, 0] },
      breaks: "a guard commits for its section alone",
      off: { guardsAfterRenewal: false },
    },
    "a lease is passed on after a guard without a new uuid": {
      takesOut: ["protocol#releasing"],
      more: { ticks: 0, takes: [1, 0] },
      breaks: "a guard commits for its section alone",
      off: { reissuesAfterGuard: false },
    },
    "a reissue asks for no uuid": {
      takesOut: ["protocol#releasing", "protocol#late-copies: reissue, release, parking"],
      more: { ticks: 0, takes: [2, 1] },
      breaks: "an ended uuid stays ended",
      off: applies<Transfer>("reissue", (write, row) => ({ write: { ...write, from: uuidOn(row, write.from) } })),
    },
  },
  "fenced guards": {
    "a guard asks for no token": {
      takesOut: ["fencing-and-guards#what-a-guard-asks"],
      more: { ticks: 0, takes: [1, 0], lateCopies: 3 },
      breaks: "a guard commits for its section alone",
      off: applies<Check>("check", (write) => ({ write: { ...write, fence: undefined } })),
    },
  },
  "hand-offs": {
    "a hand-off asks for no later stamp": {
      takesOut: ["protocol#late-copies: transfer of a hand-off", "hand-off#what-is-promised: A token is used once"],
      more: { takes: [1, 0] },
      breaks: "a token is resumed once",
      off: applies<Transfer>("transfer", ({ after: _, ...write }) => ({ write })),
    },
    "who resumes asks for no uuid": {
      takesOut: ["protocol#hand-off 2", "hand-off#what-is-promised: A token is used once"],
      more: { takes: [1, 0], lateCopies: 0 },
      breaks: "an ended uuid stays ended",
      off: applies<Transfer>("transfer", (write, row) => ({ write: { ...write, from: uuidOn(row, write.from) } })),
    },
    "who resumes goes on with the uuid of the token": {
      takesOut: ["protocol#hand-off", "hand-off#what-is-promised: A token is used once"],
      more: { takes: [1, 0], lateCopies: 0 },
      breaks: "a token is resumed once",
      off: { resumedAs: (token) => token },
    },
  },
  "watched hand-offs": {
    "a token is the uuid that everybody sees": {
      takesOut: ["trap 43", "protocol#hand-off", "hand-off#what-is-promised: Nobody resumes"],
      more: { forges: true },
      breaks: "an ended uuid stays ended",
      off: { opens: (secret) => secret },
    },
    "a hand-off and who resumes it leave `ttlMs` as it was": {
      takesOut: ["protocol#hand-off"],
      breaks: "an ended uuid stays ended",
      off: applies<Transfer>("transfer", (write, row) => ({ write: { ...write, ttlMs: Number(row.ttlMs) } })),
    },
  },
};
