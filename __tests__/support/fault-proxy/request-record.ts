import type { IncomingHttpHeaders } from "node:http";
import { now } from "../monotonic.js";
import { deferred } from "./deferred.js";
import type { Ending, RecordedRequest, Units } from "./recorded-request.js";
import { parseWire, type WireReply, type WireRequest } from "./wire.js";

/** The proxy's side of a {@link RecordedRequest}: what it fills in. */
export class RequestRecord implements RecordedRequest {
  readonly seq: number;
  readonly arrivedAt: number = now();
  readonly client: string;
  readonly operation: string;
  readonly body: WireRequest;
  readonly invocation: string | undefined;
  readonly attempt: number;
  readonly settled: Promise<void>;
  fault: string | undefined;
  forwarded = false;
  table: { readonly status: number; readonly body: WireReply } | undefined;
  status: number | undefined;
  response: WireReply | undefined;
  units: Units = { read: 0, write: 0 };
  ending: Ending | undefined;
  readonly #settled = deferred<void>();

  constructor(seq: number, client: string, headers: IncomingHttpHeaders, text: string) {
    this.seq = seq;
    this.client = client;
    this.operation = String(headers["x-amz-target"] ?? "").replace(/^.*\./, "");
    this.body = parseWire(text);
    this.invocation = headers["amz-sdk-invocation-id"]?.toString();
    this.attempt = Number(/attempt=(\d+)/.exec(String(headers["amz-sdk-request"]))?.[1] ?? 1);
    this.settled = this.#settled.promise;
  }

  end(ending: Ending): void {
    if (this.ending !== undefined) return;
    this.ending = ending;
    this.#settled.resolve();
  }
}
