import type { Address } from "../../lib/protocol/addresses.js";
import type { Row } from "../../lib/protocol/row.js";
import type { Take, Transfer, Write } from "../../lib/protocol/writes.js";
import type {
  GuardedWrites,
  RangePage,
  RangeQuery,
  TransactOutcome,
  WriteAllOutcome,
  WriteOutcome,
} from "../../lib/store.js";

/** What a process asks of the table: plain data, which a network can hold back, repeat and reorder. */
export type Message =
  | { readonly kind: "write"; readonly write: Write }
  | { readonly kind: "writeAll"; readonly takes: readonly Take[] }
  | { readonly kind: "read"; readonly at: Address; readonly consistent: boolean }
  | { readonly kind: "query"; readonly query: RangeQuery }
  | { readonly kind: "transact"; readonly writes: GuardedWrites };

interface Outcomes {
  readonly write: { readonly outcome: WriteOutcome };
  readonly writeAll: { readonly outcome: WriteAllOutcome };
  readonly read: { readonly row: Row | undefined };
  readonly query: { readonly page: RangePage };
  readonly transact: { readonly outcome: TransactOutcome };
}

/** A message, and what the table has answered. */
export type Answer = { [Kind in Message["kind"]]: Extract<Message, { kind: Kind }> & Outcomes[Kind] }[Message["kind"]];

/** The rows that a message is about; none for a query. */
export function addressesOf(message: Message): readonly Address[] {
  switch (message.kind) {
    case "write":
      return [message.write.at];
    case "writeAll":
      return message.takes.map(({ at }) => at);
    case "read":
      return [message.at];
    case "query":
      return [];
    case "transact":
      return [message.writes.guard.at];
    default:
      return message satisfies never;
  }
}

/** The takes in a message: one, those of a set, or none. */
export function takesOf(message: Message): readonly Take[] {
  if (message.kind === "writeAll") return message.takes;
  return message.kind === "write" && message.write.kind === "take" ? [message.write] : [];
}

/** The transfer in a message, if there is one: of a lock that is handed off, or resumed. */
export function transferOf(message: Message): Transfer | undefined {
  return message.kind === "write" && message.write.kind === "transfer" ? message.write : undefined;
}

/** An unlock by force, as opposed to a release. */
export function isForced(write: Write): boolean {
  return write.kind === "vacate" && (write.leaves.kind === "untilExpires" || write.leaves.kind === "kept");
}
