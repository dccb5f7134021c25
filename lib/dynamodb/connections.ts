import { Agent as HttpAgent } from "node:http";
import { Agent as HttpsAgent } from "node:https";
import { replyAlarm, timers } from "../time/clock.js";

/** Idle connections are closed after this: gateways and firewalls forget them after a minute or more, and do not say so. */
const IDLE_MS = 45_000;

/** A connection that is not there after this is given up: an attempt that asks elsewhere then has half of its time left. */
const CONNECT_MS = 1_500;

export interface ConnectionsOptions {
  /** How long connecting may take. Default 1 500. */
  readonly connectMs?: number;
}

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
  readonly httpAgent: HttpAgent;
  readonly httpsAgent: HttpsAgent;
  /** How many requests have left: it tells before from after without a clock. */
  #sent = 0;
  /** How many requests had left at the last answer. */
  #sentAtAnswer = 0;

  constructor({ connectMs = CONNECT_MS }: ConnectionsOptions = {}) {
    this.httpAgent = this.#noting(bounding(new HttpAgent(OPTIONS), connectMs));
    this.httpsAgent = this.#noting(bounding(new HttpsAgent(OPTIONS), connectMs));
  }

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

/** Has an agent give up a connection that takes too long to be made. */
function bounding<Agent extends HttpAgent>(agent: Agent, connectMs: number): Agent {
  const connect = agent.createConnection.bind(agent);
  agent.createConnection = (...how) => {
    const connection = connect(...how);
    const cancel = replyAlarm(timers, connectMs, () => {
      connection?.destroy(Object.assign(new Error(`no connection within ${connectMs} ms`), { code: "ETIMEDOUT" }));
    });
    return connection?.once("connect", cancel).once("close", cancel);
  };
  return agent;
}
