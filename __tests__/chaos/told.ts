import type { History } from "./history.js";
import type { Line } from "./register.js";
import { ofKind, type WorkerMessage } from "./worker-messages.js";

/** What hosts have told of one lock, beside what is in its log. */
export function historyOf(name: string, lines: readonly Line[], messages: readonly WorkerMessage[]): History {
  const isHere = ({ log }: { readonly log: string }): boolean => log === name;
  const concerns = ({ names }: { readonly names: readonly string[] }): boolean => names.includes(name);
  return {
    lines,
    beliefs: ofKind(messages, "left").flatMap(({ section, names, belief }) =>
      belief === undefined || !names.includes(name) ? [] : [{ section, ...belief }],
    ),
    acknowledged: ofKind(messages, "acknowledged").filter(isHere),
    handedOff: ofKind(messages, "handed off").filter(concerns),
    resumptions: [...ofKind(messages, "resuming"), ...ofKind(messages, "resumed")].filter(concerns),
    looks: ofKind(messages, "looked")
      .filter(isHere)
      .map(({ section, token, version }) => ({ section, token: BigInt(token), version })),
    sentAfterRelease: ofKind(messages, "sent late").filter((sent) => isHere(sent) && sent.isReleased),
  };
}

/** A guard refuses only what has lost the lock. */
export function wronglyRefused(messages: readonly WorkerMessage[]): string[] {
  return ofKind(messages, "refused").flatMap(({ log, section, held }) =>
    held ? [`${log}: a guard refused ${section}, which held the lock`] : [],
  );
}
