import type { Defect } from "./defects.js";
import type { GuardedOutcome } from "./guarded-log.js";
import type { LockGroup } from "./lock-groups.js";

/** What a worker is given. */
export interface WorkerConfig {
  readonly tableName: string;
  readonly group: LockGroup;
  /** Its name, which no other start of a worker has. */
  readonly worker: string;
  readonly seed: number;
  /** How many of its sections want the lock at a time. */
  readonly loops: number;
  /** The address of the engine itself, for the log. */
  readonly directEndpoint: string;
  readonly defect?: Defect | undefined;
}

/** An event of the histories of these logs, as it is: .ci/check-history.js says what each means. */
interface HistoryEvent {
  readonly logs: readonly string[];
}

interface OfSection {
  readonly section: string;
}

/** What a worker reports, by kind. */
interface Told {
  /** `joined` if it shares the acquisition of another section. */
  readonly entered: OfSection & { readonly joined: boolean };
  readonly acknowledged: HistoryEvent & OfSection & { readonly step: number; readonly place: number };
  readonly believed: HistoryEvent & OfSection & { readonly from: number; readonly to: number };
  readonly looked: HistoryEvent & OfSection & { readonly token: string; readonly place: number };
  /** `dies` if its host kills itself then. */
  readonly "handed off": HistoryEvent & OfSection & { from: number; until: number; readonly dies: boolean };
  readonly "tried token": HistoryEvent & { readonly of: string; readonly at: number; readonly section?: string };
  readonly "sent after release": HistoryEvent & OfSection & { readonly step: number };
  /** A line was written in the section's time by another. */
  readonly "late write": OfSection & { readonly by: string };
  readonly "resume refused": { readonly because: string };
  /** A guard has refused a write of a section; `held` if the section had not lost its lock. */
  readonly refused: OfSection & { readonly held: boolean };
  /** What has become of a guarded line that was sent after the unlock. */
  readonly "late outcome": { readonly outcome: GuardedOutcome };
  /** With the locks that it held, and why it lost them, if it did. */
  readonly left: OfSection & { readonly names: readonly string[]; readonly lost: string | undefined };
  /** A call that wanted the lock and did not get it. */
  readonly without: { readonly because: string };
  /** The library's own word for what it did. */
  readonly acquired: { readonly takeover: string | undefined };
  /** The time of day was set to another. */
  readonly stepped: object;
}

type MessageOf<Kind extends keyof Told> = { readonly [field: string]: unknown; readonly kind: Kind } & Told[Kind];

export type WorkerMessage = { [Kind in keyof Told]: MessageOf<Kind> }[keyof Told];

export function messagesOf(
  slots: readonly { readonly hosts: readonly { readonly messages: readonly WorkerMessage[] }[] }[],
): WorkerMessage[] {
  return slots.flatMap(({ hosts }) => hosts.flatMap(({ messages }) => messages));
}

export function ofKind<Kind extends keyof Told>(messages: readonly WorkerMessage[], kind: Kind): MessageOf<Kind>[] {
  return messages.filter((message): message is WorkerMessage & MessageOf<Kind> => message.kind === kind);
}
