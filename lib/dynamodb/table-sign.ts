import { LockStoreError } from "../errors.js";
import { told, wrongEndpoint } from "./unreachable.js";

/** A reply as a request handler gives it, its headers in lower case. Any part may be missing. */
export interface Response {
  readonly headers?: Readonly<Record<string, string | undefined>>;
  readonly statusCode?: number;
  readonly body?: Body;
}

/** Handlers on Node's `http` give a stream of Node's, and those on `fetch` one of the web's. */
interface Body {
  readonly destroy?: () => unknown;
  readonly cancel?: () => Promise<unknown>;
}

const OWN_TYPES = /^application\/(x-amz-json|x-amz-cbor|cbor)/;

/** How long an address is given that has answered, and never with the sign: what stands before a table may still be starting. */
const PATIENCE_MS = 2_000;

/**
 * Whether a reply has the sign of a table: a content type that only AWS's JSON and CBOR services have. A request id is no sign,
 * because gateways and other services send one as well.
 */
export function isSigned({ "content-type": type }: NonNullable<Response["headers"]>): boolean {
  return type !== undefined && OWN_TYPES.test(type);
}

/**
 * Tells the table's replies from those of somebody else who answers at its address: a load balancer with a fixed answer, a
 * maintenance page, a captive portal. All engines send the sign with every reply. A reply without it is no answer and teaches
 * nothing, whatever its status, and the request is sent again.
 *
 * Where nothing but such replies has come for {@link PATIENCE_MS}, the address may be wrong, which the caller has to hear soon:
 * the next one ends its call, or, if its status says that it passes, is warned of. One reply with the sign ends that for good.
 */
export class TableSign {
  readonly #tableName: string;
  #isKnown = false;
  /** When the first and the last of the replies came that had no sign. */
  #unsigned: { readonly first: number; readonly last: number } | undefined;

  constructor(tableName: string) {
    this.#tableName = tableName;
  }

  /** Whether the table has been known to answer. */
  get isKnown(): boolean {
    return this.#isKnown;
  }

  /**
   * Judges a reply before anything of it is believed.
   * @param from which host it came from. @param now on any stopwatch.
   * @returns an error for a reply that is not the table's.
   */
  judge({ headers = {}, statusCode = 0 }: Response, from: string, now: () => number): LockStoreError | undefined {
    if (isSigned(headers)) {
      this.#isKnown = true;
      return undefined;
    }
    const type = headers["content-type"];
    const message =
      `The endpoint of table ${this.#tableName}, ${from}, answered with status ${statusCode} and ` +
      `${type === undefined ? "no content-type" : `content-type ${type}`}, but the reply is not DynamoDB's, whose replies all have the ` +
      `content-type application/x-amz-json-1.0: ${wrongEndpoint(from)}`;
    const mayPass = statusCode >= 500 || statusCode === 429;
    const isOver = !this.#isKnown && this.#isOver(now());
    if (isOver && mayPass) told(from, message);
    return notTheTables(message, { transient: !isOver || mayPass, throttled: statusCode === 429 });
  }

  /** A pause of the same length begins the count anew: whoever calls again later is given the same time. */
  #isOver(now: number): boolean {
    const { first, last } = this.#unsigned ?? { first: now, last: now };
    this.#unsigned = { first: now - last > PATIENCE_MS ? now : first, last: now };
    return now - this.#unsigned.first > PATIENCE_MS;
  }
}

/** The error for a reply that is not the table's: what was asked may have been done all the same. */
export function notTheTables(
  message: string,
  { transient = true, throttled = false }: { readonly transient?: boolean; readonly throttled?: boolean } = {},
): LockStoreError {
  return new LockStoreError(message, { transient, answered: false, retried: true, throttled });
}
