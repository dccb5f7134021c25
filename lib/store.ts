import type { TransactWriteItem } from "@aws-sdk/client-dynamodb";
import { LockStoreError } from "./errors.js";
import type { LockData } from "./lock-info.js";
import type { Address, SortRange } from "./protocol/addresses.js";
import type { Row } from "./protocol/row.js";
import type { Check, Take, Write } from "./protocol/writes.js";

/** @internal An item under a key of ours that is none of our rows. It is never overwritten: the message says how to remove it. */
export class BadRow extends LockStoreError {
  readonly at: Address;
  /** Whether it was a row of ours once, as far as can be seen. */
  readonly isDamaged: boolean;
  readonly owner: string;

  constructor(
    message: string,
    { name, sort }: Address,
    { isDamaged, owner = "" }: { readonly isDamaged: boolean; readonly owner: string | undefined },
  ) {
    super(message);
    this.at = { name, sort };
    this.isDamaged = isDamaged;
    this.owner = owner;
  }
}

/** @internal The rows that items show, and the items that show none; an item is left out where `parse` says so. */
export function sorted<Item>(
  items: readonly Item[],
  parse: (item: Item) => Row | undefined,
): { readonly rows: readonly Row[]; readonly bad: readonly BadRow[] } {
  const rows: Row[] = [];
  const bad: BadRow[] = [];
  for (const item of items) {
    try {
      const row = parse(item);
      if (row !== undefined) rows.push(row);
    } catch (error) {
      if (!(error instanceof BadRow)) throw error;
      bad.push(error);
    }
  }
  return { rows, bad };
}

/** @internal What a write came to. */
export type WriteOutcome =
  | {
      readonly kind: "applied";
      /**
       * The row as a take or a transfer found it, or a release or a renewal if it carried a mark; undefined where there was
       * none, and for other writes.
       */
      readonly replaced: Row | undefined;
      /** What the write has drawn: a fencing token, or the ticket of a place. */
      readonly drawn: bigint | undefined;
    }
  | {
      readonly kind: "refused";
      /** The row that refused; undefined where there was none. */
      readonly row: Row | undefined;
      /** Whether the store may have sent the request more than once, so that an earlier copy may have been applied. */
      readonly retried: boolean;
    };

/** @internal */
export type WriteAllOutcome =
  | { readonly kind: "applied" }
  /** For each write the row that refused it; undefined where none did. */
  | { readonly kind: "refused"; readonly rows: readonly (Row | undefined)[] };

/** @internal Some of the rows of one name, in the order of their sort keys. */
export interface RangeQuery extends SortRange {
  readonly name: string;
  /** Where the page before it ended: this one starts behind that. */
  readonly after?: string | undefined;
  readonly limit: number;
  readonly consistent: boolean;
}

/** @internal Where a page of a scan ends: the store's own, opaque to everybody else. */
export type Cursor = Readonly<Record<string, unknown>>;

/** @internal Some of a table's rows. There may be none although more are to come. */
export interface Page<Next> {
  readonly rows: readonly Row[];
  /** Items under keys of ours that are none of our rows. */
  readonly bad: readonly BadRow[];
  /** What the next page starts after, such as a sort key; undefined where there is none. */
  readonly next: Next | undefined;
}

/** A guard for a DocumentClient's `TransactWriteCommand`: plain values in the place of DynamoDB's. */
export interface DocumentGuard {
  readonly ConditionCheck: {
    readonly TableName: string;
    readonly Key: Record<string, string>;
    readonly ConditionExpression: string;
    readonly ExpressionAttributeNames: Record<string, string>;
    readonly ExpressionAttributeValues: Record<string, string | number | bigint>;
    readonly ReturnValuesOnConditionCheckFailure: "ALL_OLD";
  };
}

/** @internal A caller's own writes, and the guard that goes with them. */
export interface GuardedWrites {
  readonly items: readonly TransactWriteItem[];
  readonly guard: Check;
  /** The same in every copy, so that they are applied once. */
  readonly token: string;
  /** Whether the reply is to tell what they cost. The same in every copy: a table may refuse one that differs from the first. */
  readonly isMetered?: boolean;
}

/** @internal */
export type TransactOutcome =
  | { readonly kind: "committed" }
  /** The guard was refused, by this row or by there being none, and nothing was written. */
  | { readonly kind: "unguarded"; readonly row: Row | undefined }
  /** The caller's own items were refused: the error is the caller's, as it came. */
  | { readonly kind: "refused"; readonly error: unknown };

/**
 * What the protocol asks of a table: single conditional writes and reads, one attempt each.
 *
 * Outcomes are data. Everything else is thrown as a `LockStoreError`; after a transient one a write may or may not have
 * been applied, now or later. `signal` ends the request; it does not undo it.
 *
 * @internal
 */
export interface Store {
  /**
   * Sends nothing. @param rows how many rows store the data, by one transaction. Default 1.
   * @throws {@link LockConfigError} naming what the table could not store.
   */
  admit(data: LockData | undefined, rows?: number): void;

  /** Sends nothing. @throws {@link LockConfigError} naming what of a flight's value would not come back as it is. */
  admitResult(data: LockData): void;

  /**
   * What the table does with it is {@link apply}.
   * @param inTime whether more may still leave for it, where the answer to a write asks for another one. Default: yes.
   */
  write(write: Write, signal: AbortSignal, inTime?: () => boolean): Promise<WriteOutcome>;

  /**
   * Applies all of these writes, each of another row, or none of them. None of them draws a token or is for a tick. A
   * conflict with another write of the same moment is a transient error, unless another's row refuses anyhow.
   */
  writeAll(writes: readonly Take[], signal: AbortSignal): Promise<WriteAllOutcome>;

  /** @throws BadRow for an item that is none of our rows. */
  read(at: Address, options: { readonly consistent: boolean }, signal: AbortSignal): Promise<Row | undefined>;

  /** Rows in the order of their sort keys. Items under other keys than ours are left out. */
  query(query: RangeQuery, signal: AbortSignal): Promise<Page<string>>;

  /**
   * Some rows of locks whose names begin with `prefix`, eventually consistent and in no order: those that are kept but
   * free as well. Of items that are not locks' own rows, those are shown that were damaged.
   */
  scan(prefix: string, after: Cursor | undefined, signal: AbortSignal): Promise<Page<Cursor>>;

  /** The guard as an item for a transaction of the caller's own. Sends nothing. */
  guard(guard: Check): TransactWriteItem;

  /** The same for a DocumentClient. */
  documentGuard(guard: Check): DocumentGuard;

  /** Sends nothing. @throws {@link LockConfigError} for items that cannot go along with a guard of this row. */
  admitItems(at: Address, items: readonly TransactWriteItem[]): void;

  /** Applies a caller's writes, all or none, if the guard holds at that instant. */
  transact(writes: GuardedWrites, signal: AbortSignal): Promise<TransactOutcome>;

  /** Why a request may get no answer although the table gives one, and what to do, if that shows at this moment. */
  whySilent?(): string | undefined;

  /** Ends what the store opened itself. */
  close(): void;
}
