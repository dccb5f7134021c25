/// <reference lib="esnext.disposable" preserve="true" />
import "./foreign-errors.js";
import { setMaxListeners } from "node:events";
import { Agent, createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { createServer as createTlsServer, Server as TlsServer } from "node:https";
import type { AddressInfo } from "node:net";
import { text as readText } from "node:stream/consumers";
import { Chaos } from "./fault-proxy/chaos.js";
import { Exchange, type Surroundings } from "./fault-proxy/exchange.js";
import { type Fault, passOn } from "./fault-proxy/faults.js";
import { createHold, type Hold } from "./fault-proxy/hold.js";
import { type Cut, Links } from "./fault-proxy/links.js";
import { RequestLog } from "./fault-proxy/log.js";
import { type Match, RecordedRequest } from "./fault-proxy/recorded-request.js";
import { ask, TargetError, withDate } from "./fault-proxy/reply.js";
import { Rule } from "./fault-proxy/rules.js";

export type { Chaos, ChaosKind } from "./fault-proxy/chaos.js";
export * from "./fault-proxy/faults.js";
export { createGate } from "./fault-proxy/gate.js";
export type { RecordedRequest } from "./fault-proxy/recorded-request.js";
export { withBody } from "./fault-proxy/reply.js";

/** A network between clients and DynamoDB that fails on demand, and remembers what passed through it. */
export class FaultProxy extends RequestLog implements AsyncDisposable {
  /** How much later every request arrives. */
  latencyMs = 0;
  /** A reply of the table goes no further before this resolves, and is lost if it rejects. */
  confirm: (request: RecordedRequest) => Promise<void> = async () => undefined;
  readonly #server: Server;
  readonly #target: URL;
  // An idle socket is given up well before the engine does so: a request on a socket that is just being closed would fail.
  readonly #agent = new Agent({ keepAlive: true, timeout: 5_000 });
  readonly #closing: AbortController;
  readonly #links = new Links();
  readonly #errors: unknown[] = [];
  readonly #rules: Rule[] = [];
  #chaos: Chaos | undefined;
  #date: (() => string) | undefined;

  /** Use {@link startFaultProxy}. */
  constructor(server: Server, target: string) {
    const closing = new AbortController();
    setMaxListeners(0, closing.signal); // all who wait listen
    super(closing.signal);
    this.#closing = closing;
    this.#server = server;
    this.#target = new URL(target);
    server.on(isTls(server) ? "secureConnection" : "connection", (connection) => this.#links.add(connection));
    server.on("request", (incoming, response) => void this.#handle(incoming, response));
  }

  get endpoint(): string {
    return `${isTls(this.#server) ? "https" : "http"}://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** An endpoint whose requests bear this tag, and which {@link partition} can cut off. */
  endpointFor(client: string): string {
    return `${this.endpoint}/${encodeURIComponent(client)}`;
  }

  /** The next `times` such requests meet this fault. Of several rules that match, the oldest acts. */
  on(match: Match, fault: Fault, { times = 1 }: { readonly times?: number } = {}): Rule {
    const rule = new Rule(match, times, fault);
    this.#rules.push(rule);
    return rule;
  }

  /** Keeps the next `times` such requests, or the replies to them, until they are released. */
  hold(
    match: Match,
    { times = 1, at = "request" }: { readonly times?: number; readonly at?: "request" | "reply" } = {},
  ): Hold {
    return createHold(at, (fault) => this.on(match, fault, { times }));
  }

  /** Random faults from a seed, for what no rule takes. */
  chaos(seed: number): Chaos {
    this.#chaos = new Chaos(seed);
    return this.#chaos;
  }

  /** Nothing passes between the client and the proxy any more; what the table is already doing, it does. */
  partition(client?: string, how: Cut = "hang"): void {
    this.#links.cut(client, how);
  }

  heal(client?: string): void {
    this.#links.heal(client);
  }

  /** How many connections clients have made so far. */
  get connections(): number {
    return this.#links.made;
  }

  get openConnections(): number {
    return this.#links.open;
  }

  /** The connections that are open now, of this client or of all, are dead for good. Their client learns of it at the next use. */
  killConnections(how: Cut, client?: string): void {
    this.#links.kill(client, how);
  }

  /** What the Date header of all replies shows from now on. */
  rewriteDate(date: () => string): void {
    this.#date = date;
  }

  /** @throws what a rule's predicate or a fault of the test's own has thrown while the proxy was at work. */
  async close(): Promise<void> {
    if (this.#closing.signal.aborted) return;
    this.#closing.abort(new Error("the fault proxy has been closed"));
    for (const rule of this.#rules) rule.remove();
    const closed = new Promise((resolve) => this.#server.close(resolve));
    this.#server.closeAllConnections();
    this.#agent.destroy();
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
    const request = new RecordedRequest(clientIn(incoming.url), incoming.headers, text);
    const exchange = new Exchange(request, incoming.headers, text, response, this.#surroundings);
    try {
      const reached = this.#links.admit(exchange);
      const fault = reached ? this.#faultFor(request) : undefined;
      request.fault = reached ? fault?.kind : this.#links.isDead(exchange) ? "dead connection" : "partition";
      this.add(request);
      if (!reached) return;
      await exchange.wait(this.latencyMs);
      await (fault ?? passOn()).apply(exchange);
    } catch (error) {
      if (!(error instanceof TargetError || this.#closing.signal.aborted)) this.#errors.push(error);
      await exchange.failed(error);
    }
  }

  #faultFor(request: RecordedRequest): Fault | undefined {
    return this.#rules.find((rule) => rule.isFor(request))?.take() ?? this.#chaos?.take(request);
  }

  get #surroundings(): Surroundings {
    return {
      send: async (request, headers, text) => {
        const reply = await ask(this.#target, this.#agent, headers, text);
        await this.confirm(request).catch((cause: unknown) => {
          throw new TargetError("the reply is lost", { cause });
        });
        return reply;
      },
      closing: this.#closing.signal,
      dated: (reply) => (this.#date ? withDate(reply, this.#date()) : reply),
      admit: (exchange) => this.#links.admit(exchange),
      changed: () => this.changed(),
    };
  }
}

/**
 * Starts a proxy in front of the engine at `target`, on a port of its own.
 * @param tls its key and certificate; without them, it speaks plain HTTP.
 */
export async function startFaultProxy({
  target,
  tls,
}: {
  readonly target: string;
  readonly tls?: { readonly key: string; readonly cert: string };
}): Promise<FaultProxy> {
  const server = tls === undefined ? createServer() : createTlsServer(tls);
  // Sockets end when a test says so. A server that closes idle ones would add resets of its own.
  Object.assign(server, { keepAliveTimeout: 0, requestTimeout: 0, headersTimeout: 0 });
  const proxy = new FaultProxy(server, target);
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(0, "127.0.0.1", resolve);
  });
  return proxy;
}

const isTls = (server: Server): boolean => server instanceof TlsServer;

/** The tag in the path of a URL of {@link FaultProxy.endpointFor}. */
function clientIn(path = "/"): string {
  const tag = path.split("/")[1] ?? "";
  try {
    return decodeURIComponent(tag);
  } catch {
    return tag;
  }
}
