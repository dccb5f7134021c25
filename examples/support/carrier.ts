/// <reference lib="esnext.disposable" preserve="true" />
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

/** Another company's service. It takes every parcel that it gets, whether or not there was one for this order before. */
export class Carrier implements AsyncDisposable {
  /** The order of each parcel that it has taken. */
  readonly parcels: string[] = [];
  readonly #held = new Map<string, { readonly arrived: () => void; readonly released: Promise<void> }>();
  readonly #server = createServer(async (request, response) => {
    const order = request.url?.split("/").at(-1) ?? "";
    if (request.method === "POST") {
      await sleep(20);
      this.#held.get(order)?.arrived();
      await this.#held.get(order)?.released;
      this.parcels.push(order);
    }
    response.writeHead(this.parcels.includes(order) ? 200 : 404).end();
  });

  /** @returns its address. */
  async start(): Promise<string> {
    await once(this.#server.listen(0, "127.0.0.1"), "listening");
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** From now on it gives no answer about a parcel for that order, until it is released. */
  hold(order: string): { readonly arrived: Promise<void>; readonly release: () => void } {
    let release = (): void => undefined;
    let arrive = (): void => undefined;
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    const arrived = new Promise<void>((resolve) => {
      arrive = resolve;
    });
    this.#held.set(order, { arrived: arrive, released });
    return { arrived, release };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.close();
    this.#server.closeAllConnections();
  }
}
