import type { WireReply, WireRequest } from "./wire.js";

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

/** One request of a client, in the order of arrival. It fills up while the request is under way. */
export interface RecordedRequest {
  readonly seq: number;
  /** When it came, on the stopwatch that all processes of a machine share. */
  readonly arrivedAt: number;
  /** The tag of `endpointFor`; empty on the proxy's own endpoint. */
  readonly client: string;
  /** As in "PutItem". */
  readonly operation: string;
  /** As the client sent it. */
  readonly body: WireRequest;
  /** The SDK's id of one call; its retries share it. */
  readonly invocation: string | undefined;
  /** The SDK's count of its tries of one call, from 1. */
  readonly attempt: number;
  /** The kind of the fault that this request met. */
  readonly fault: string | undefined;
  /** Whether it was sent to the table. */
  readonly forwarded: boolean;
  /** What the table answered, whether or not the client ever saw it. */
  readonly table: { readonly status: number; readonly body: WireReply } | undefined;
  /** What the client was told. */
  readonly status: number | undefined;
  readonly response: WireReply | undefined;
  /** What it cost. A refused condition is counted as DynamoDB bills it, for rows of up to 1 kB. */
  readonly units: Units;
  readonly ending: Ending | undefined;
  /** Resolves when the request has ended, however. */
  readonly settled: Promise<void>;
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
