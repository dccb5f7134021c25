/// <reference lib="esnext.disposable" preserve="true" />
import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { eventually } from "./eventually.js";

/** What the work of another process does: it asks, and goes on when the test answers. */
export class Desk implements AsyncDisposable {
  /** What was asked and told so far, such as `POST /work/1`, in order. */
  readonly asked: string[] = [];
  readonly #open = new Map<string, ServerResponse[]>();
  readonly #server = createServer((request, response) => {
    const what = decodeURIComponent(`${request.method} ${request.url}`);
    this.asked.push(what);
    // What is told needs no answer of the test's.
    if (request.method === "PUT") response.end();
    else this.#open.set(what, [...(this.#open.get(what) ?? []), response]);
  });

  /** @returns its address. */
  async start(): Promise<string> {
    await once(this.#server.listen(0, "127.0.0.1"), "listening");
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Waits until somebody asks that, and answers the first who did. */
  async answer(what: string, body = ""): Promise<void> {
    await eventually(() => (this.#open.get(what)?.length ?? 0) > 0);
    this.#open.get(what)?.shift()?.end(body);
  }

  /** Waits until that was asked, or told, this many times. */
  async hears(what: string, times = 1): Promise<void> {
    await eventually(() => this.asked.filter((each) => each === what).length >= times);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.close();
    this.#server.closeAllConnections();
  }
}
