import { Agent as HttpAgent } from "node:http";
import { Agent as HttpsAgent } from "node:https";
const IDLE_MS = 45_000;
const OPTIONS = { keepAlive: true, maxSockets: 512, timeout: IDLE_MS };
export class Connections {
    httpAgent = this.#noting(new HttpAgent(OPTIONS));
    httpsAgent = this.#noting(new HttpsAgent(OPTIONS));
    #sent = 0;
    #sentAtAnswer = 0;
    send(request) {
        this.#sent += 1;
        const number = this.#sent;
        return request().catch((error) => {
            if (this.#sentAtAnswer < number)
                this.#closeIdle();
            throw error;
        });
    }
    #noting(agent) {
        const keep = agent.keepSocketAlive.bind(agent);
        agent.keepSocketAlive = (connection) => {
            this.#sentAtAnswer = this.#sent;
            return keep(connection);
        };
        return agent;
    }
    #closeIdle() {
        for (const { freeSockets } of [this.httpAgent, this.httpsAgent]) {
            for (const connection of Object.values(freeSockets).flatMap((idle) => idle ?? []))
                connection.destroy();
        }
    }
}
