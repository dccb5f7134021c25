import { Agent, request as httpRequest, type IncomingHttpHeaders } from "node:http";
import { text as readText } from "node:stream/consumers";
import { createReply, type Reply } from "./reply.js";

/** The table could not be asked, or broke off. */
export class TargetError extends Error {
  override readonly name = "TargetError";
  /** False only when it is certain that the table saw nothing of the request. */
  readonly reached: boolean;

  constructor(reached: boolean, cause: unknown) {
    super("the engine behind the fault proxy does not answer", { cause });
    this.reached = reached;
  }
}

/** The engine behind the proxy. */
export interface Target {
  send(headers: IncomingHttpHeaders, text: string): Promise<Reply>;
  close(): void;
}

export function connectTarget(endpoint: string): Target {
  const { hostname, port } = new URL(endpoint);
  // An idle socket is given up well before the engine does so: a request on a socket that is just being closed would fail.
  const agent = new Agent({ keepAlive: true, timeout: 5_000 });

  function send(headers: IncomingHttpHeaders, text: string): Promise<Reply> {
    const { host, connection, "accept-encoding": encoding, ...rest } = headers;
    const options = { agent, hostname, port, method: "POST", path: "/" };
    return new Promise((resolve, reject) => {
      let reached = false;
      const request = httpRequest({
        ...options,
        headers: { ...rest, "content-length": Buffer.byteLength(text) },
      });
      request.once("socket", (socket) => {
        if (!socket.connecting) reached = true;
        else socket.once("connect", () => (reached = true));
      });
      request.on("error", (error) => reject(new TargetError(reached, error)));
      request.on("response", (response) => {
        readText(response).then(
          (body) => resolve(createReply(response.statusCode ?? 0, response.headers, body)),
          (error: unknown) => reject(new TargetError(true, error)),
        );
      });
      request.end(text);
    });
  }

  return { send, close: () => agent.destroy() };
}
