import type { IncomingHttpHeaders } from "node:http";
import { now } from "../monotonic.js";
import { deferred } from "./deferred.js";
import { parseWire, type WireReply, type WireRequest } from "./wire.js";

/** Capacity units. */
export interface Units {
  readonly read: number;
  readonly write: number;
}

/**
 * How a request ended for its client: with an answer, with a socket that the proxy cut,
 * or without either because the client left (or died) first.
 */
export type Ending = "answered" | "cut" | "left";

/** One request of a client. It fills up while the request is under way. */
export class RecordedRequest {
  /** When it came, on the stopwatch that all processes of a machine share. */
  readonly arrivedAt: number = now();
  /** The tag of `endpointFor`; empty on the proxy's own endpoint. */
  readonly client: string;
  /** As in "PutItem". */
  readonly operation: string;
  /** As the client sent it. */
  readonly body: WireRequest;
  /** The kind of the fault that this request met. */
  fault: string | undefined;
  /** What the table answered, whether or not the client ever saw it. */
  table: { readonly status: number; readonly body: WireReply } | undefined;
  /** What the client was told. */
  status: number | undefined;
  response: WireReply | undefined;
  /** What it cost. A refused condition is counted as DynamoDB bills it, for rows of up to 1 kB. */
  units: Units = { read: 0, write: 0 };
  ending: Ending | undefined;
  readonly #settled = deferred<void>();

  constructor(client: string, headers: IncomingHttpHeaders, text: string) {
    this.client = client;
    this.operation = String(headers["x-amz-target"] ?? "").replace(/^.*\./, "");
    this.body = parseWire(text);
  }

  /** Resolves when the request has ended, however. */
  get settled(): Promise<void> {
    return this.#settled.promise;
  }

  end(ending: Ending): void {
    this.ending ??= ending;
    this.#settled.resolve();
  }
}

/** Which requests are meant: an operation, a predicate, or all the given parts of a description. */
export type Match =
  | string
  | ((request: RecordedRequest) => boolean)
  | {
      readonly operation?: string | ((operation: string) => boolean);
      readonly client?: string;
      readonly where?: (request: RecordedRequest) => boolean;
    };

export function matches(request: RecordedRequest, match: Match): boolean {
  if (typeof match === "string") return request.operation === match;
  if (typeof match === "function") return match(request);
  const { operation, client, where } = match;
  if (client !== undefined && request.client !== client) return false;
  if (typeof operation === "string" && request.operation !== operation) return false;
  if (typeof operation === "function" && !operation(request.operation)) return false;
  return where === undefined || where(request);
}
