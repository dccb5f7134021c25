import { once } from "node:events";
import { Agent, type IncomingMessage, type RequestOptions, request } from "node:http";
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { ScanCommand } from "@aws-sdk/client-dynamodb";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { LockTable } from "dynamutex";
import { Desk } from "../support/desk.js";
import { startPatience } from "../support/eventually.js";
import { freePort } from "../support/free-port.js";
import { type PagePrograms, pagePrograms } from "../support/page-programs.js";
import type { RunningProgram } from "../support/running-program.js";
import { testClient } from "../support/table.js";

/** The reader's own work: it does what the test says. */
const SHIPPING = `
export async function ship(order: string, signal: AbortSignal): Promise<string> {
  const response = await fetch(process.env.DESK + "/ship/" + order, { method: "POST", signal });
  const receipt = await response.text();
  if (receipt === "fail") throw new Error("the carrier refuses");
  return receipt;
}
`;

/** Prints what becomes of calls, which is not seen from outside. */
const TELL = `
import { subscribe } from "node:diagnostics_channel";
interface Told {
  readonly name: string;
  readonly reason: string;
}
subscribe("dynamutex:asked", (message) => console.log("asked", (message as Told).name));
subscribe("dynamutex:failed", (message) => console.log("failed", (message as Told).name, (message as Told).reason));
`;

const PROGRAMS = ["service.ts", "app.ts", "fastify-service.ts"];
const client = testClient();
let programs: PagePrograms;
let locks: LockTable;

beforeAll(async () => {
  programs = await pagePrograms({
    pages: ["docs/guides/http-services.md", "docs/guides/shutdown.md"],
    only: ["requests.ts", ...PROGRAMS],
    given: { "shipping.ts": SHIPPING, "tell.ts": TELL },
  });
  locks = new LockTable({ tableName: programs.tableName, client });
});

afterAll(async () => {
  await locks.close();
  await programs[Symbol.asyncDispose]();
});

describe.each(PROGRAMS)("%s of docs/guides/http-services.md", (file) => {
  test("trap 53: answers what is in flight after SIGTERM, refuses who waits, and ends", async () => {
    await using service = await start(file);
    const large = "a".repeat(16_000_000);
    const slow = service.ask("2"); // its client takes its time to read
    await service.desk.answer("POST /ship/2", large);
    const download = await slow;
    const first = service.ask("1");
    await service.desk.hears("POST /ship/1");
    const second = service.ask("1");
    await service.program.printed("asked order#1", 2);

    service.program.kill("SIGTERM");
    expect((await second).statusCode).toBe(503);
    service.program.kill("SIGTERM"); // as npm does where the whole process group gets one
    const refused = service.ask("3", { agent: false });
    await expect(refused).rejects.toMatchObject({ code: expect.stringMatching(/^ECONN(REFUSED|RESET)$/) });
    await service.desk.answer("POST /ship/1", "receipt 1");
    expect(await text(await first)).toBe("receipt 1");
    expect((await text(download)).length).toBe(large.length);
    // Its client would keep the connections: they do not keep the process.
    expect(await service.program.exit).toEqual({ code: 0, signal: null });
    expect(service.program.lines.filter((line) => !/^(asked|failed) /.test(line))).toEqual([]);
    const { Items = [] } = await client.send(new ScanCommand({ TableName: programs.tableName }));
    expect(Items.filter(({ uuid }) => uuid !== undefined)).toEqual([]); // released
  });

  test("ends with Ctrl-C at once, and leaves no lock behind", async () => {
    await using service = await start(file);
    const cut = service.ask("9");
    await service.desk.hears("POST /ship/9");
    service.program.kill("SIGINT");
    expect((await cut).statusCode).toBe(500);
    await service.program.printed(/LockLostError.*order#9/);
    expect(await service.program.exit).toEqual({ code: 0, signal: null });
    expect(await locks.mutex("order#9").inspect()).toBeNull();
  });

  test("runs one request for an order at a time, and tells who has waited for 5 s that it is busy", async () => {
    await using service = await start(file);
    await using held = await locks.mutex("order#busy").lock();
    const busy = service.ask("busy");
    const answers = [service.ask("4"), service.ask("4"), service.ask("4")];
    for (let count = 1; count <= 3; count += 1) {
      await service.program.printed("asked order#4", 3);
      await service.desk.hears("POST /ship/4", count);
      expect(service.desk.asked.filter((asked) => asked === "POST /ship/4")).toHaveLength(count);
      await service.desk.answer("POST /ship/4", "shipped");
    }
    expect((await Promise.all(answers)).map(({ statusCode }) => statusCode)).toEqual([200, 200, 200]);
    expect((await busy).statusCode).toBe(409);
    expect(service.program.lines.filter((line) => !/^(asked|failed) /.test(line))).toEqual([]);
    await held.unlock();
  });

  test("ends the wait of a client that disconnects", async () => {
    await using service = await start(file);
    await using held = await locks.mutex("order#5").lock();
    const gone = new AbortController();
    const left = service.ask("5", { signal: gone.signal }).catch((error) => error.name);
    await service.program.printed("asked order#5");
    gone.abort();
    expect(await left).toBe("AbortError");
    await service.program.printed("failed order#5 aborted");
    await held.unlock();
    expect(service.desk.asked).not.toContain("POST /ship/5");
  });

  test("logs why it answers 500: a lost lock, and an error of the work", async () => {
    await using service = await start(file);
    const lost = service.ask("6");
    await service.desk.hears("POST /ship/6");
    const mutex = locks.mutex("order#6");
    await mutex.forceUnlock((await mutex.inspect())?.uuid ?? "");
    expect((await lost).statusCode).toBe(500);
    await service.program.printed(/LockLostError.*order#6/);
    const failed = service.ask("7");
    await service.desk.answer("POST /ship/7", "fail");
    expect((await failed).statusCode).toBe(500);
    await service.program.printed(/the carrier refuses/);
  });

  test("trap 53: logs why it answers 503: without a region, it names AWS_REGION", async () => {
    const none = { AWS_REGION: undefined, AWS_DEFAULT_REGION: undefined, AWS_CONFIG_FILE: "/dev/null" };
    await using service = await start(file, none);
    expect((await service.ask("8")).statusCode).toBe(503);
    await service.program.printed(/LockStoreError.*AWS_REGION/);
  });
});

interface Service extends AsyncDisposable {
  readonly desk: Desk;
  readonly program: RunningProgram;
  /** On a connection that the client keeps for more. */
  ask(order: string, options?: RequestOptions): Promise<IncomingMessage>;
}

async function start(file: string, env: Readonly<Record<string, string | undefined>> = {}): Promise<Service> {
  const desk = new Desk();
  const port = await freePort();
  const program = programs.start(file, {
    DESK: await desk.start(),
    PORT: String(port),
    NODE_OPTIONS: "--import=./tell.js",
    ...env,
  });
  const agent = new Agent({ keepAlive: true });
  const ask: Service["ask"] = async (order, options) => {
    const asking = request({ port, path: `/orders/${order}`, method: "POST", agent, ...options });
    asking.end();
    const [response] = await once(asking, "response");
    return response;
  };
  await isUp(port);
  return {
    desk,
    program,
    ask,
    async [Symbol.asyncDispose]() {
      agent.destroy();
      await program[Symbol.asyncDispose]();
      await desk[Symbol.asyncDispose]();
    },
  };
}

/** Resolves once somebody listens on the port. */
async function isUp(port: number): Promise<void> {
  const patience = startPatience(() => false);
  for (;;) {
    patience.check();
    const socket = connect(port, "localhost");
    const answered = await once(socket, "connect").then(
      () => true,
      () => false,
    );
    socket.destroy();
    if (answered) return;
    await sleep(20);
  }
}
