import type { IncomingHttpHeaders, ServerResponse } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import type { Gate } from "./gate.js";
import type { RecordedRequest } from "./recorded-request.js";
import { errorReply, type Reply, withBody } from "./reply.js";
import type { RequestRecord } from "./request-record.js";
import { TargetError } from "./target.js";
import { mustAskForUnits, unitsOf } from "./units.js";
import type { WireReply } from "./wire.js";

/** How long, in ms, or until what. */
export type Wait = number | Gate | PromiseLike<unknown>;

/** What a fault can do with one request. It may do nothing: then the client waits until it gives up. */
export interface Exchange {
  readonly request: RecordedRequest;
  /** Sends the request to the table. May be called again, long after the client has gone: that is a late copy. */
  forward(): Promise<Reply>;
  answer(reply: Reply): Promise<void>;
  /** Makes up an error and answers with it. */
  fail(status: number, type: string, message: string, more?: WireReply): Promise<void>;
  /** Cuts the client's socket. */
  cut(): void;
  /** Rejects when the proxy closes first. */
  wait(until: Wait): Promise<void>;
}

/** What exchanges share: the proxy, as they see it. */
export interface Surroundings {
  send(headers: IncomingHttpHeaders, text: string): Promise<Reply>;
  /** Aborts when the proxy closes. */
  readonly closing: AbortSignal;
  /** The last touch to every reply, from the table or made up: its Date. */
  dated(reply: Reply): Reply;
  /** Whether the client can be reached now. */
  admit(exchange: LiveExchange): boolean;
  replyLatencyMs(): number;
  /** Rejects if what the table has answered does not count after all. */
  confirmed(request: RecordedRequest): Promise<void>;
  tableAnswered(request: RecordedRequest, reply: Reply, isCopy: boolean): void;
  /** Somebody waits now. */
  waiting(): void;
}

export class LiveExchange implements Exchange {
  readonly request: RequestRecord;
  readonly #headers: IncomingHttpHeaders;
  readonly #text: string;
  readonly #response: ServerResponse;
  readonly #around: Surroundings;

  constructor(
    request: RequestRecord,
    headers: IncomingHttpHeaders,
    text: string,
    response: ServerResponse,
    around: Surroundings,
  ) {
    this.request = request;
    this.#headers = headers;
    this.#text = text;
    this.#response = response;
    this.#around = around;
    // "close" comes after a complete answer too, and always comes.
    response.once("close", () => request.end(response.writableFinished ? "answered" : "left"));
    response.on("error", () => undefined);
    // Node would add a Date of its own where a fault has removed the table's.
    response.sendDate = false;
  }

  async forward(): Promise<Reply> {
    const { request } = this;
    this.#around.closing.throwIfAborted();
    const isCopy = request.forwarded;
    const metered = mustAskForUnits(request.operation, request.body);
    const text = metered ? JSON.stringify({ ...request.body, ReturnConsumedCapacity: "TOTAL" }) : this.#text;
    request.forwarded = true;
    const raw = this.#around.dated(await this.#around.send(this.#headers, text));
    await this.#around.confirmed(request);
    const reply = metered ? withoutCapacity(raw) : raw;
    if (!isCopy) {
      request.units = unitsOf(request.operation, request.body, raw);
      request.table = { status: reply.status, body: reply.body };
    }
    this.#around.tableAnswered(request, reply, isCopy);
    return reply;
  }

  async answer(reply: Reply): Promise<void> {
    await this.wait(this.#around.replyLatencyMs());
    if (this.request.ending !== undefined || !this.#around.admit(this)) return;
    const { connection, "keep-alive": _, "transfer-encoding": __, ...headers } = reply.headers;
    const length = Buffer.byteLength(reply.text);
    this.request.status = reply.status;
    this.request.response = reply.body;
    this.#response.writeHead(reply.status, { ...headers, "content-length": length });
    this.#response.end(reply.text);
    await this.request.settled;
  }

  fail(status: number, type: string, message: string, more?: WireReply): Promise<void> {
    return this.answer(this.#around.dated(errorReply(status, type, message, more)));
  }

  /** An engine that is down answers like an overloaded service; one that breaks off leaves its client in doubt. */
  async failed(error: unknown): Promise<void> {
    if (!(error instanceof TargetError) || error.reached) return this.cut();
    await this.fail(503, "ServiceUnavailable", error.message).catch(() => this.cut());
  }

  cut(): void {
    this.request.end("cut");
    const { socket } = this.#response;
    // A reset, not an orderly end: the client must not take it for a reply without a body.
    if (socket) socket.resetAndDestroy();
    else this.#response.destroy();
  }

  async wait(until: Wait): Promise<void> {
    const { closing } = this.#around;
    closing.throwIfAborted();
    if (until === 0) return;
    this.#around.waiting();
    if (typeof until === "number") return sleep(until, undefined, { signal: closing });
    const event = "released" in until ? until.released : until;
    await new Promise<void>((resolve, reject) => {
      const onClosing = () => reject(closing.reason);
      closing.addEventListener("abort", onClosing, { once: true });
      Promise.resolve(event)
        .then(() => resolve(), reject)
        .finally(() => closing.removeEventListener("abort", onClosing));
    });
  }
}

function withoutCapacity(reply: Reply): Reply {
  if (reply.body.ConsumedCapacity === undefined) return reply;
  const { ConsumedCapacity: _, ...body } = reply.body;
  return withBody(reply, body);
}
