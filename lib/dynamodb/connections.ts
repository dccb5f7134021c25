import { Agent as HttpAgent } from "node:http";
import { Agent as HttpsAgent } from "node:https";

/** Idle connections are closed after this: gateways and firewalls forget them after a minute or more, and do not say so. */
const IDLE_MS = 45_000;

const OPTIONS = { keepAlive: true, maxSockets: 512, timeout: IDLE_MS };

type Connection = Parameters<HttpAgent["keepSocketAlive"]>[0];

/**
 * The pool of connections of a client that the library makes.
 *
 * When a gateway has forgotten them, or a frozen host goes on, all idle connections can be dead at once while new ones work:
 * each is reset at its next use, or stays silent. Tried one after the other, they would use up a lease. So a request without a
 * reply closes the idle connections that have been quiet since before it left, and the next attempt opens a new one. Connections
 * that have answered since stay open: a table that is only slow does not lose its pool.
 */
export class Connections {
  readonly httpAgent: HttpAgent = this.#noting(new HttpAgent(OPTIONS));
  readonly httpsAgent: HttpsAgent = this.#noting(new HttpsAgent(OPTIONS));
  /** How many requests have left: it tells before from after without a clock. */
  #sent = 0;
  /** How many requests had left when a connection became idle. */
  readonly #quietSince = new WeakMap<Connection, number>();

  /** Sends a request, once. */
  send<Result>(request: () => Promise<Result>): Promise<Result> {
    this.#sent += 1;
    const number = this.#sent;
    return request().catch((error: unknown) => {
      this.#closeQuiet(number);
      throw error;
    });
  }

  #noting<Agent extends HttpAgent>(agent: Agent): Agent {
    const keep = agent.keepSocketAlive.bind(agent);
    agent.keepSocketAlive = (connection) => {
      this.#quietSince.set(connection, this.#sent);
      return keep(connection);
    };
    return agent;
  }

  /** Closes the idle connections that nothing was heard of since before the request of this number left. */
  #closeQuiet(number: number): void {
    for (const { freeSockets } of [this.httpAgent, this.httpsAgent]) {
      for (const idle of Object.values(freeSockets)) {
        for (const connection of idle ?? []) {
          if ((this.#quietSince.get(connection) ?? 0) < number) connection.destroy();
        }
      }
    }
  }
}
