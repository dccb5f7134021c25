import type { Transfer } from "../../lib/protocol/writes.js";
import { applies, type Switch, uuidOn } from "./switch.js";

export const HAND_OFF_SWITCHES: readonly Switch[] = [
  {
    name: "a hand-off asks for no later stamp",
    stage: "hand-offs",
    more: { takes: [1, 0] },
    breaks: "a token is resumed once",
    off: applies<Transfer>("transfer", ({ after: _, ...write }) => ({ write })),
  },
  {
    name: "who resumes asks for no uuid",
    stage: "hand-offs",
    more: { takes: [1, 0], lateCopies: 0 },
    breaks: "an ended uuid stays ended",
    off: applies<Transfer>("transfer", (write, row) => ({ write: { ...write, from: uuidOn(row, write.from) } })),
  },
  {
    name: "who resumes goes on with the uuid of the token",
    stage: "hand-offs",
    more: { takes: [1, 0], lateCopies: 0 },
    breaks: "a token is resumed once",
    off: { resumedAs: (token) => token },
  },
  {
    name: "a token is the uuid that everybody sees",
    stage: "watched hand-offs",
    more: { forges: true },
    breaks: "an ended uuid stays ended",
    off: { opens: (secret) => secret },
  },
  {
    name: "a hand-off and who resumes it leave `ttlMs` as it was",
    stage: "watched hand-offs",
    breaks: "an ended uuid stays ended",
    off: applies<Transfer>("transfer", (write, row) => ({ write: { ...write, ttlMs: Number(row.ttlMs) } })),
  },
];
