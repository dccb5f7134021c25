import { Agent as HttpAgent } from "node:http";
import { Agent as HttpsAgent } from "node:https";

/** Idle connections are closed after this: gateways and firewalls forget them after a minute or more, and do not say so. */
const IDLE_MS = 45_000;

const OPTIONS = { keepAlive: true, maxSockets: 512, timeout: IDLE_MS };

/**
 * The pool of connections of a client that the library makes.
 *
 * When a gateway has forgotten them, or a frozen host goes on, all idle connections can be dead at once while new ones work:
 * each is reset at its next use, or stays silent. Tried one after the other, they would use up a lease. So a request without a
 * reply closes all idle connections if none has answered since it left, and the next attempt opens a new one.
 *
 * If one has answered since, the table is slow and the pool stays. The answer came on a connection from before: a new one opens
 * only while none is idle.
 */
export class Connections {
  readonly httpAgent: HttpAgent = this.#noting(new HttpAgent(OPTIONS));
  readonly httpsAgent: HttpsAgent = this.#noting(new HttpsAgent(OPTIONS));
  /** How many requests have left: it tells before from after without a clock. */
  #sent = 0;
  /** How many requests had left at the last answer. */
  #sentAtAnswer = 0;

  /** Sends a request, once. */
  send<Result>(request: () => Promise<Result>): Promise<Result> {
    this.#sent += 1;
    const number = this.#sent;
    return request().catch((error: unknown) => {
      if (this.#sentAtAnswer < number) this.#closeIdle();
      throw error;
    });
  }

  #noting<Agent extends HttpAgent>(agent: Agent): Agent {
    const keep = agent.keepSocketAlive.bind(agent);
    agent.keepSocketAlive = (connection) => {
      this.#sentAtAnswer = this.#sent;
      return keep(connection);
    };
    return agent;
  }

  #closeIdle(): void {
    for (const { freeSockets } of [this.httpAgent, this.httpsAgent]) {
      for (const connection of Object.values(freeSockets).flatMap((idle) => idle ?? [])) connection.destroy();
    }
  }
}
