import type { LockStoreError } from "../../lib/errors.js";
import type { Address } from "../../lib/protocol/addresses.js";
import type { Row } from "../../lib/protocol/row.js";
import type { Renew, Take, Write } from "../../lib/protocol/writes.js";
import type {
  GuardedWrites,
  Page,
  RangeQuery,
  TransactOutcome,
  WriteAllOutcome,
  WriteOutcome,
} from "../../lib/store.js";

/** What a process asks of the table: plain data, which a network can hold back, repeat and reorder. */
export type Message =
  | { readonly kind: "write"; readonly write: Write }
  | { readonly kind: "writeAll"; readonly takes: readonly Take[] }
  | { readonly kind: "renewAll"; readonly renewals: readonly Renew[] }
  | { readonly kind: "read"; readonly at: Address; readonly consistent: boolean }
  | { readonly kind: "query"; readonly query: RangeQuery }
  | { readonly kind: "transact"; readonly writes: GuardedWrites };

interface Outcomes {
  readonly write: { readonly outcome: WriteOutcome };
  readonly writeAll: { readonly outcome: WriteAllOutcome };
  /** What came of each. */
  readonly renewAll: { readonly outcomes: readonly (WriteOutcome | LockStoreError)[] };
  readonly read: { readonly row: Row | undefined };
  readonly query: { readonly page: Page<string> };
  readonly transact: { readonly outcome: TransactOutcome };
}

/** A message, and what the table has answered. */
export type Answer = { [Kind in Message["kind"]]: Extract<Message, { kind: Kind }> & Outcomes[Kind] }[Message["kind"]];
