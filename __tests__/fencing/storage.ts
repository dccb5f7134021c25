/// <reference lib="esnext.disposable" preserve="true" />
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { json } from "node:stream/consumers";

export interface Answer {
  readonly accepted: boolean;
}

/** One write, as it arrived. */
export interface Write extends Answer {
  readonly token: bigint;
  readonly value: string;
}

/**
 * Somebody's storage, which has never heard of locks: it remembers the greatest token that it has seen, and refuses
 * what comes with a smaller one.
 */
export class TokenCheckingStorage implements AsyncDisposable {
  /** All writes in the order of their arrival. */
  readonly writes: Write[] = [];
  /** What it holds. */
  value: string | undefined;
  /** What it would hold if it did not check. */
  unchecked: string | undefined;
  #greatest = 0n;
  readonly #server: Server = createServer(async (request, response) => {
    const { token, value } = (await json(request)) as { readonly token: string; readonly value: string };
    response.end(JSON.stringify(this.#write(BigInt(token), value)));
  });

  async listen(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #write(token: bigint, value: string): Answer {
    const accepted = token >= this.#greatest;
    this.writes.push({ token, value, accepted });
    this.unchecked = value;
    if (accepted) {
      this.#greatest = token;
      this.value = value;
    }
    return { accepted };
  }
}
