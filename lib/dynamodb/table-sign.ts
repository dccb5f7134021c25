import { LockStoreError } from "../errors.js";

/**
 * What marks a reply as DynamoDB's. `type`: a content type that only AWS's own JSON and CBOR services have. `id`: a request id, which
 * other servers of AWS send as well. `none`: neither.
 */
export type Sign = "type" | "id" | "none";

/** The strongest has the lowest number. */
const RANKS: Readonly<Record<Sign, number>> = { type: 0, id: 1, none: 2 };

const OWN_TYPES = /^application\/(x-amz-json|x-amz-cbor|cbor)/;

/** The headers of a reply, in lower case. */
export type Headers = Readonly<Record<string, string | undefined>>;

export function signOf({ "content-type": type, "x-amzn-requestid": id }: Headers): Sign {
  if (type !== undefined && OWN_TYPES.test(type)) return "type";
  return id === undefined ? "none" : "id";
}

/**
 * Tells the table's replies from those of somebody else who answers at its address: a load balancer with a fixed answer, a
 * maintenance page, a captive portal. Such a reply is no answer, and teaches nothing, whatever its status.
 *
 * 1. The content type of DynamoDB proves the table. Real engines send it with every reply, so it costs no request.
 * 2. A table without it is proven by a row that it shows after the row was written ({@link prove}).
 * 3. From then on, each reply needs the sign that the proven table had. Where that is weaker than the content type, a stranger may
 *    have it as well, so each grant is read back.
 */
export class TableSign {
  /** The sign of the proven table; undefined before that. */
  #required: Sign | undefined;
  /** The weakest sign among the replies before the proof. */
  #weakest: Sign = "type";

  /** Whether the table has been known to answer. */
  get isProven(): boolean {
    return this.#required !== undefined;
  }

  /** Whether an admitted success proves by itself that a write was applied. A request id is too weak for that. */
  get isEnough(): boolean {
    return this.#required === "type";
  }

  /** Judges a reply before anything of it is believed. @returns false if it is not the table's. */
  admits(sign: Sign): boolean {
    if (sign === "type") this.#required ??= sign;
    if (this.#required !== undefined) return RANKS[sign] <= RANKS[this.#required];
    if (RANKS[sign] > RANKS[this.#weakest]) this.#weakest = sign;
    return true;
  }

  /** The table has shown what was written to it. */
  prove(): void {
    this.#required ??= this.#weakest;
  }
}

/** The error for a reply that is not the table's. @param status of the reply, if it has one. */
export function notTheTables(tableName: string, status: number | undefined): LockStoreError {
  const said = status === undefined ? "Somebody" : `A reply with status ${status}`;
  return new LockStoreError(
    `${said} answered in the place of table ${tableName}, and not as DynamoDB does: check what stands before it`,
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
