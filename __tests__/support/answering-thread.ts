import { once } from "node:events";
import { Worker } from "node:worker_threads";

/** The thread's program. It counts in shared memory, so that a thread which computes can wait for it. */
const PROGRAM = `
const { createServer } = require("node:http");
const { parentPort, workerData } = require("node:worker_threads");
const counts = new Int32Array(workerData);
const count = (index) => {
  Atomics.add(counts, index, 1);
  Atomics.notify(counts, index);
};
const headers = { "content-type": "application/x-amz-json-1.0", "content-length": 2 };
const server = createServer((request, response) => {
  parentPort.postMessage(request.headers["x-amz-target"]);
  response.sendDate = false;
  request.resume().on("end", () => response.writeHead(200, headers).end("{}", () => count(0)));
});
server.keepAliveTimeout = 0;
server.on("connection", () => count(1)).listen(0, "127.0.0.1", () => parentPort.postMessage(server.address().port));
`;

const INDEX = { answers: 0, connections: 1 } as const;

/** Beyond this, what is awaited does not come: a bound for a broken test, not a measure of anything. */
const GIVE_UP_MS = 30_000;

/** A table in a thread of its own, which says yes to everything at once: also while this thread computes. */
export class AnsweringThread {
  readonly endpoint: string;
  /** The operations that were asked for, in order, as far as this thread has heard. */
  readonly operations: string[] = [];
  readonly #thread: Worker;
  readonly #counts: Int32Array;

  private constructor(thread: Worker, counts: Int32Array, port: number) {
    this.endpoint = `http://127.0.0.1:${port}`;
    this.#thread = thread;
    this.#counts = counts;
    thread.on("message", (target: string) => this.operations.push(target.replace(/^.*\./, "")));
  }

  static async start(): Promise<AnsweringThread> {
    const memory = new SharedArrayBuffer(2 * Int32Array.BYTES_PER_ELEMENT);
    const thread = new Worker(PROGRAM, { eval: true, workerData: memory });
    const [port] = (await once(thread, "message")) as [number];
    return new AnsweringThread(thread, new Int32Array(memory), port);
  }

  count(what: keyof typeof INDEX): number {
    return Atomics.load(this.#counts, INDEX[what]);
  }

  /** Blocks this thread, and with it its event loop, until there are so many, and for `ms` at the least. */
  blockUntil(what: keyof typeof INDEX, count: number, ms: number): void {
    const end = performance.now() + ms;
    for (let has = this.count(what); has < count; has = this.count(what)) {
      if (Atomics.wait(this.#counts, INDEX[what], has, GIVE_UP_MS) === "timed-out")
        throw new Error(`no ${count} ${what}`);
    }
    while (performance.now() < end);
  }

  async close(): Promise<void> {
    await this.#thread.terminate();
  }
}
