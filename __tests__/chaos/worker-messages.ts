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

/** Somebody has tried to go on with a token. */
interface Resumption {
  /** The token, by the section that it is from. */
  readonly of: string;
  /** Before the try, on the machine's stopwatch. */
  readonly at: number;
  /** The section that goes on, if it does. */
  readonly section: string | undefined;
}

/** What a worker reports. A log has the name of its lock. */
export type WorkerMessage = {
  readonly [field: string]: unknown;
} /** `joined` if it shares the acquisition of another section. */ & (
  | { readonly kind: "entered"; readonly section: string; readonly joined: boolean }
  | {
      readonly kind: "acknowledged";
      readonly log: string;
      readonly version: number;
      readonly section: string;
      readonly step: number;
    }
  | { readonly kind: "late write"; readonly log: string; readonly section: string; readonly by: string }
  /** A section has ended and its lock waits to be resumed; `dies` if its host kills itself then. */
  | {
      readonly kind: "handed off";
      readonly names: readonly string[];
      readonly by: string;
      readonly from: number;
      readonly until: number;
      readonly dies: boolean;
    }
  /** A token is about to be resumed, and later on: was resumed, or refused. */
  | ({ readonly kind: "resuming" | "resumed"; readonly names: readonly string[] } & Resumption)
  | { readonly kind: "resume refused"; readonly because: string }
  /** A section with a fencing token has read the log up to this line. */
  | {
      readonly kind: "looked";
      readonly log: string;
      readonly section: string;
      readonly token: string;
      readonly version: number;
    }
  /** A guard has refused a write of a section; `held` if the section had not lost its lock. */
  | { readonly kind: "refused"; readonly log: string; readonly section: string; readonly held: boolean }
  /** A guarded line is about to be sent after the unlock; `isReleased` if that was acknowledged. */
  | {
      readonly kind: "sent late";
      readonly log: string;
      readonly section: string;
      readonly step: number;
      readonly isReleased: boolean;
    }
  | { readonly kind: "late outcome"; readonly section: string; readonly outcome: GuardedOutcome }
  | {
      readonly kind: "left";
      readonly section: string;
      /** Of the locks that it held. */
      readonly names: readonly string[];
      /** Why the lock was lost, if it was. */
      readonly lost: string | undefined;
      /** From when to when it certainly believed that it held the lock, if it ever looked while it did. */
      readonly belief?: { readonly from: number; readonly to: number };
    }
  /** A call that wanted the lock and did not get it. */
  | { readonly kind: "without"; readonly because: string }
  /** The library's own word for what it did. */
  | { readonly kind: "acquired"; readonly takeover: string | undefined }
  | { readonly kind: "told lost"; readonly reason: string }
  | { readonly kind: "stepped"; readonly ms: number }
);

export function messagesOf(
  slots: readonly { readonly hosts: readonly { readonly messages: readonly WorkerMessage[] }[] }[],
): WorkerMessage[] {
  return slots.flatMap(({ hosts }) => hosts.flatMap(({ messages }) => messages));
}

export function ofKind<Kind extends WorkerMessage["kind"]>(
  messages: readonly WorkerMessage[],
  kind: Kind,
): Extract<WorkerMessage, { kind: Kind }>[] {
  return messages.filter((message): message is Extract<WorkerMessage, { kind: Kind }> => message.kind === kind);
}
