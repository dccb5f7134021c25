import type { Line } from "./register.js";
import { ofKind, type WorkerMessage } from "./worker-messages.js";

/** One event of the history that a run leaves, as .ci/check-history.js describes it: the checker has no more than these. */
export type HistoryEvent = { readonly log: string; readonly event: string } & Readonly<Record<string, unknown>>;

/** What happened around one lock: its log, and what hosts have told of it. */
export function eventsOf(log: string, lines: readonly Line[], messages: readonly WorkerMessage[]): HistoryEvent[] {
  const isHere = (message: { readonly log: string }): boolean => message.log === log;
  const concerns = ({ names }: { readonly names: readonly string[] }): boolean => names.includes(log);
  const tries = [...ofKind(messages, "resuming"), ...ofKind(messages, "resumed")].filter(concerns);
  const left = ofKind(messages, "left").filter(concerns);
  const late = ofKind(messages, "sent late").filter((sent) => isHere(sent) && sent.isReleased);
  return [
    ...lines.map(({ version: place, token, ...line }) => ({ event: "line", place, token: token?.toString(), ...line })),
    ...left.flatMap(({ section, belief }) => (belief === undefined ? [] : [{ event: "believed", section, ...belief }])),
    ...ofKind(messages, "acknowledged")
      .filter(isHere)
      .map(({ section, step, version: place }) => ({ event: "acknowledged", section, step, place })),
    ...ofKind(messages, "looked")
      .filter(isHere)
      .map(({ section, token, version: place }) => ({ event: "looked", section, token, place })),
    ...late.map(({ section, step }) => ({ event: "sent after release", section, step })),
    ...ofKind(messages, "handed off")
      .filter(concerns)
      .map(({ by: section, from, until }) => ({ event: "handed off", section, from, until })),
    ...tries.map(({ of, at, section }) => ({ event: "tried token", of, at, section })),
  ].map((event) => ({ log, ...event }));
}

/** A guard refuses only what has lost the lock. */
export function wronglyRefused(messages: readonly WorkerMessage[]): string[] {
  return ofKind(messages, "refused").flatMap(({ log, section, held }) =>
    held ? [`${log}: a guard refused ${section}, which held the lock`] : [],
  );
}
