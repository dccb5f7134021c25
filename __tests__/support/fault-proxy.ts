/// <reference lib="esnext.disposable" preserve="true" />
import "./foreign-errors.js";
import { setMaxListeners } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text as readText } from "node:stream/consumers";
import { type Chaos, type ChaosOptions, ChaosSource } from "./fault-proxy/chaos.js";
import { LiveExchange, type Surroundings } from "./fault-proxy/exchange.js";
import { type Fault, passOn } from "./fault-proxy/faults.js";
import { createHold, type Hold, type HoldOptions } from "./fault-proxy/hold.js";
import { type Cut, Links } from "./fault-proxy/links.js";
import { RequestLog } from "./fault-proxy/log.js";
import type { Match, RecordedRequest, Units } from "./fault-proxy/recorded-request.js";
import { dateOf, type Reply, withDate } from "./fault-proxy/reply.js";
import { RequestRecord } from "./fault-proxy/request-record.js";
import { type Rule, RuleBook } from "./fault-proxy/rules.js";
import { connectTarget, type Target, TargetError } from "./fault-proxy/target.js";

export type { Chaos, ChaosKind, ChaosOptions } from "./fault-proxy/chaos.js";
export type { Exchange, Wait } from "./fault-proxy/exchange.js";
export * from "./fault-proxy/faults.js";
export { createGate, type Gate } from "./fault-proxy/gate.js";
export type { Hold, HoldOptions } from "./fault-proxy/hold.js";
export type { Ending, Match, RecordedRequest, Units } from "./fault-proxy/recorded-request.js";
export { type Reply, withBody, withDate } from "./fault-proxy/reply.js";
export type { Rule } from "./fault-proxy/rules.js";
export type { WireItem, WireReply, WireRequest, WireValue } from "./fault-proxy/wire.js";

/** How much later everything arrives, in ms: a figure, or a function that is asked each time. */
export interface Latency {
  readonly requestMs?: number | (() => number);
  readonly replyMs?: number | (() => number);
}

/** A network between clients and DynamoDB that fails on demand, and remembers what passed through it. */
export class FaultProxy implements AsyncDisposable {
  /** Copies that {@link duplicate} delivered. They are not in `requests`: no client sent them. */
  readonly copies: { readonly request: RecordedRequest; readonly reply: Reply }[] = [];
  readonly #server: Server;
  readonly #target: Target;
  readonly #rules = new RuleBook();
  readonly #links = new Links();
  readonly #closing = new AbortController();
  readonly #log = new RequestLog(this.#closing.signal);
  readonly #errors: unknown[] = [];
  #chaos: ChaosSource | undefined;
  #latency: Latency = {};
  #confirm: (request: RecordedRequest) => Promise<void> = async () => undefined;
  #rewriteDate: ((date: Date) => string | undefined) | undefined;

  /** Use {@link startFaultProxy}. */
  constructor(server: Server, target: Target) {
    this.#server = server;
    this.#target = target;
    setMaxListeners(0, this.#closing.signal); // all who wait listen
    server.on("request", (incoming, response) => void this.#handle(incoming, response));
  }

  get endpoint(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** An endpoint whose requests bear this tag, and which {@link partition} can cut off. */
  endpointFor(client: string): string {
    return `${this.endpoint}/${encodeURIComponent(client)}`;
  }

  /** All requests since the last {@link reset}, in order of arrival. */
  get requests(): readonly RecordedRequest[] {
    return this.#log.requests;
  }

  select(match: Match): RecordedRequest[] {
    return this.#log.select(match);
  }

  count(match: Match = {}): number {
    return this.#log.select(match).length;
  }

  /** How many of each operation. */
  counts(): Record<string, number> {
    return this.#log.counts();
  }

  /** What they cost, as far as answers have come. */
  units(match: Match = {}): Units {
    return this.#log.units(match);
  }

  /** Forgets the requests; rules stay. */
  reset(): void {
    this.#log.clear();
    this.copies.length = 0;
  }

  /** Resolves with the next such request from now on, when it arrives. */
  next(match: Match = {}): Promise<RecordedRequest> {
    return this.#log.next(match);
  }

  /** Resolves when the requests so far fulfil the condition: asked now, and whenever one arrives, waits, is applied or ends. */
  until(condition: (requests: readonly RecordedRequest[]) => boolean): Promise<void> {
    return this.#log.until(condition);
  }

  /** The next `times` such requests (1 unless told) meet this fault. Of several rules that match, the oldest acts. */
  on(match: Match, fault: Fault, { times = 1 }: { readonly times?: number } = {}): Rule {
    return this.#rules.add(match, times, fault);
  }

  /** Keeps such a request, or the reply to it, until it is released. */
  hold(match: Match, { times = 1, at = "request" }: HoldOptions = {}): Hold {
    return createHold(at, (fault) => this.#rules.add(match, times, fault));
  }

  /** Random faults from a seed, for what no rule takes. A second call replaces the first. */
  chaos(options: ChaosOptions): Chaos {
    this.#chaos = new ChaosSource(options);
    return this.#chaos;
  }

  /** Nothing passes between the client and the proxy any more; what the table is already doing, it does. */
  partition(client?: string, how: Cut = "hang"): void {
    this.#links.cut(client, how);
  }

  heal(client?: string): void {
    this.#links.heal(client);
  }

  latency(latency: Latency): void {
    this.#latency = latency;
  }

  /** From now on the table's clock is this host's and so much: whole seconds, truncated, as DynamoDB shows it. */
  shiftDate(ms: number): void {
    this.#rewriteDate = () => new Date(Date.now() + ms).toUTCString();
  }

  /** Rewrites the Date header of all replies; undefined as its result removes the header, as the argument ends this. */
  rewriteDate(rewrite: ((date: Date) => string | undefined) | undefined): void {
    this.#rewriteDate = rewrite;
  }

  /** A reply of the table goes no further before this resolves, and is lost if it rejects. */
  confirmBy(confirm: (request: RecordedRequest) => Promise<void>): void {
    this.#confirm = confirm;
  }

  /** @throws what a rule's predicate or a fault of the test's own has thrown while the proxy was at work. */
  async close(): Promise<void> {
    if (this.#closing.signal.aborted) return;
    this.#closing.abort(new Error("the fault proxy has been closed"));
    this.#rules.clear();
    const closed = new Promise((resolve) => this.#server.close(resolve));
    this.#server.closeAllConnections();
    this.#target.close();
    await closed;
    if (this.#errors.length > 0) throw this.#errors[0];
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #handle(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    // A client that leaves before it has said all it wanted to has said nothing.
    const text = await readText(incoming).catch(() => undefined);
    if (text === undefined) return;
    const request = new RequestRecord(this.#log.nextSeq(), clientIn(incoming.url), incoming.headers, text);
    const exchange = new LiveExchange(request, incoming.headers, text, response, this.#surroundings);
    try {
      const reached = this.#links.admit(exchange);
      const fault = reached ? (this.#rules.take(request) ?? this.#chaos?.take(request)) : undefined;
      request.fault = reached ? fault?.kind : "partition";
      this.#log.add(request);
      if (!reached) return;
      await exchange.wait(latencyMs(this.#latency.requestMs));
      await (fault ?? passOn()).apply(exchange);
    } catch (error) {
      if (!(error instanceof TargetError || this.#closing.signal.aborted)) this.#errors.push(error);
      await exchange.failed(error);
    }
  }

  readonly #surroundings: Surroundings = {
    send: (headers, text) => this.#target.send(headers, text),
    closing: this.#closing.signal,
    dated: (reply) => (this.#rewriteDate ? withDate(reply, this.#rewriteDate(dateOf(reply))) : reply),
    admit: (exchange) => this.#links.admit(exchange),
    replyLatencyMs: () => latencyMs(this.#latency.replyMs),
    confirmed: async (request) => {
      await this.#confirm(request).catch((cause: unknown) => {
        throw new TargetError(true, cause);
      });
    },
    tableAnswered: (request, reply, isCopy) => {
      if (isCopy) this.copies.push({ request, reply });
      this.#log.changed();
    },
    waiting: () => this.#log.changed(),
  };
}

/** Starts a proxy in front of the engine at `target`, on a port of its own. */
export async function startFaultProxy({ target }: { readonly target: string }): Promise<FaultProxy> {
  const server = createServer();
  // Sockets end when a test says so. A server that closes idle ones would add resets of its own.
  Object.assign(server, { keepAliveTimeout: 0, requestTimeout: 0, headersTimeout: 0 });
  const proxy = new FaultProxy(server, connectTarget(target));
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(0, "127.0.0.1", resolve);
  });
  return proxy;
}

/** The tag in the path of a URL of {@link FaultProxy.endpointFor}. */
function clientIn(path = "/"): string {
  const tag = path.split("/")[1] ?? "";
  try {
    return decodeURIComponent(tag);
  } catch {
    return tag;
  }
}

function latencyMs(latency: number | (() => number) = 0): number {
  return typeof latency === "function" ? latency() : latency;
}
