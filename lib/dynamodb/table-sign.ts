import { LockStoreError } from "../errors.js";

/** The headers of a reply, in lower case. */
export type Headers = Readonly<Record<string, string | undefined>>;

const OWN_TYPES = /^application\/(x-amz-json|x-amz-cbor|cbor)/;

/**
 * Whether a reply has the sign of a table: a content type that only AWS's JSON and CBOR services have. A request id is no sign,
 * because gateways and other services send one as well.
 */
export function isSigned({ "content-type": type }: Headers): boolean {
  return type !== undefined && OWN_TYPES.test(type);
}

/**
 * Tells the table's replies from those of somebody else who answers at its address: a load balancer with a fixed answer, a
 * maintenance page, a captive portal. Such a reply is no answer, and teaches nothing, whatever its status.
 *
 * 1. A reply with the sign proves the table. Real engines send it with every reply, so it costs no request.
 * 2. From then on, every reply needs the sign.
 * 3. Without it, a success proves nothing: each grant is read back, and the table is known once a row shows what was written.
 */
export class TableSign {
  #isKnown = false;
  #isSigned = false;

  /** Whether the table has been known to answer. */
  get isKnown(): boolean {
    return this.#isKnown;
  }

  /** Whether an admitted success proves by itself that a write was applied. */
  get isEnough(): boolean {
    return this.#isSigned;
  }

  /** Judges a reply before anything of it is believed. @returns false if it is not the table's. */
  admits(isSigned: boolean): boolean {
    if (!isSigned) return !this.#isSigned;
    this.#isSigned = true;
    this.#isKnown = true;
    return true;
  }

  /** The table has shown what was written to it. */
  prove(): void {
    this.#isKnown = true;
  }
}

/** The error for a reply that is not the table's. @param status of the reply, if it has one. */
export function notTheTables(tableName: string, status: number | undefined): LockStoreError {
  const how = status === undefined ? "" : ` with status ${status}`;
  return new LockStoreError(
    `The endpoint of table ${tableName} answered${how}, but the reply is not DynamoDB's: check the proxy, or whatever else stands before it`,
    { transient: true, answered: false, retried: true, throttled: status === 429 },
  );
}

/** The error for a write that was answered with success and left no row. @param isKnown whether the table was known to answer. */
export function notShown(tableName: string, isKnown: boolean): LockStoreError {
  return new LockStoreError(
    `The endpoint of table ${tableName} says that it wrote a row and does not show it: check that it is DynamoDB`,
    { transient: isKnown, answered: false, retried: true },
  );
}

/** The error for a grant whose row could not be read: what the table has said to the read is no answer to the grant. */
export function stillInDoubt(error: unknown): unknown {
  if (!(error instanceof LockStoreError)) return error;
  const { message, transient, throttled } = error;
  return new LockStoreError(message, { transient, throttled, answered: false, retried: true, cause: error });
}
