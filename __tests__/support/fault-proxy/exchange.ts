import { once } from "node:events";
import type { IncomingHttpHeaders, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { TLSSocket } from "node:tls";
import type { RecordedRequest } from "./recorded-request.js";
import { errorReply, type Reply, TargetError, withBody } from "./reply.js";
import { mustAskForUnits, unitsOf } from "./units.js";
import type { WireReply } from "./wire.js";

/** What exchanges share: the proxy, as they see it. */
export interface Surroundings {
  /** Asks the table. */
  send(request: RecordedRequest, headers: IncomingHttpHeaders, text: string): Promise<Reply>;
  /** Aborts when the proxy closes. */
  readonly closing: AbortSignal;
  /** The last touch to every reply, from the table or made up: its Date. */
  dated(reply: Reply): Reply;
  /** Whether the client can be reached now. */
  admit(exchange: Exchange): boolean;
  /** The table has answered, or somebody waits now. */
  changed(): void;
}

/** What a fault can do with one request. It may do nothing: then the client waits until it gives up. */
export class Exchange {
  readonly request: RecordedRequest;
  /** What the client sent it on. */
  readonly connection: Socket | undefined;
  readonly #headers: IncomingHttpHeaders;
  readonly #text: string;
  readonly #response: ServerResponse;
  readonly #around: Surroundings;

  constructor(
    request: RecordedRequest,
    headers: IncomingHttpHeaders,
    text: string,
    response: ServerResponse,
    around: Surroundings,
  ) {
    this.request = request;
    this.connection = response.socket ?? undefined;
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

  /** Sends the request to the table. May be called again, long after the client has gone: that is a late copy. */
  async forward(): Promise<Reply> {
    const { request } = this;
    const { operation, body } = request;
    this.#around.closing.throwIfAborted();
    const metered = mustAskForUnits(operation, body);
    const text = metered ? JSON.stringify({ ...body, ReturnConsumedCapacity: "TOTAL" }) : this.#text;
    const raw = this.#around.dated(await this.#around.send(request, this.#headers, text));
    const reply = metered ? withoutCapacity(raw) : raw;
    if (request.table === undefined) {
      request.units = unitsOf(operation, body, raw);
      request.table = { status: reply.status, body: reply.body };
    }
    this.#around.changed();
    return reply;
  }

  async answer(reply: Reply): Promise<void> {
    this.#around.closing.throwIfAborted();
    if (this.request.ending !== undefined || !this.#around.admit(this)) return;
    const { connection, "keep-alive": _, "transfer-encoding": __, ...headers } = reply.headers;
    const length = Buffer.byteLength(reply.text);
    this.request.status = reply.status;
    this.request.response = reply.body;
    this.#response.writeHead(reply.status, { ...headers, "content-length": length });
    this.#response.end(reply.text);
    await this.request.settled;
  }

  /** Answers with the head of a reply and half of its body, and ends the connection in order. */
  async answerHalf(reply: Reply): Promise<void> {
    this.#around.closing.throwIfAborted();
    if (this.request.ending !== undefined || !this.#around.admit(this)) return;
    const { connection, "keep-alive": _, "content-length": __, "transfer-encoding": ___, ...headers } = reply.headers;
    // A body that ends with its connection: nothing but its own text tells that the rest is missing.
    this.#response.writeHead(reply.status, { ...headers, connection: "close" });
    this.#response.useChunkedEncodingByDefault = false;
    this.#response.end(reply.text.slice(0, Math.floor(reply.text.length / 2)));
    this.request.end("cut");
  }

  /** Makes up an error and answers with it. */
  fail(status: number, type: string, message: string, more?: WireReply): Promise<void> {
    return this.answer(this.#around.dated(errorReply(status, type, message, more)));
  }

  /** An engine that is down answers like an overloaded service; one that breaks off leaves its client in doubt. */
  async failed(error: unknown): Promise<void> {
    const { code } = ((error as Error).cause ?? {}) as NodeJS.ErrnoException;
    if (!(error instanceof TargetError) || code !== "ECONNREFUSED") return this.cut();
    await this.fail(503, "ServiceUnavailable", error.message).catch(() => this.cut());
  }

  /** Cuts the client's socket. */
  cut(): void {
    this.request.end("cut");
    const { socket } = this.#response;
    // A reset, not an orderly end: the client must not take it for a reply without a body.
    // Node cannot reset one with TLS, where an end without a reply is an error as well.
    if (socket && !(socket instanceof TLSSocket)) socket.resetAndDestroy();
    else this.#response.destroy();
  }

  /** For so many ms, or for that. Rejects when the proxy closes first. */
  async wait(until: number | Promise<unknown>): Promise<void> {
    const { closing } = this.#around;
    closing.throwIfAborted();
    if (until === 0) return;
    this.#around.changed();
    if (typeof until === "number") return sleep(until, undefined, { signal: closing });
    const closed = once(closing, "abort").then(() => closing.throwIfAborted());
    await Promise.race([until, closed]);
  }
}

function withoutCapacity(reply: Reply): Reply {
  const { ConsumedCapacity, ...body } = reply.body;
  return ConsumedCapacity === undefined ? reply : withBody(reply, body);
}
