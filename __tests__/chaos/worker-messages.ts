import type { MutexOptions } from "../../lib/index.js";
import type { Defect } from "./defects.js";

/** What a worker is given. */
export interface WorkerConfig {
  readonly tableName: string;
  readonly lockName: string;
  readonly mutex: MutexOptions;
  readonly clock: "table" | "own";
  /** Its name, which no other start of a worker has. */
  readonly worker: string;
  readonly seed: number;
  /** How many of its sections want the lock at a time. */
  readonly loops: number;
  /** The address of the engine itself, for the log. */
  readonly directEndpoint: string;
  readonly defect?: Defect | undefined;
}

/** What a worker reports. */
export type WorkerMessage = { readonly [field: string]: unknown } & (
  | { readonly kind: "entered"; readonly section: string }
  | { readonly kind: "acknowledged"; readonly version: number; readonly section: string; readonly step: number }
  | { readonly kind: "late write"; readonly section: string; readonly by: string }
  | {
      readonly kind: "left";
      readonly section: string;
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
