import { once } from "node:events";
import { get, request } from "node:http";
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { LockTable } from "dynamutex";
import { freePort } from "../support/free-port.js";
import { type PagePrograms, pagePrograms } from "../support/page-programs.js";
import { testClient } from "../support/table.js";

/** An application of the reader's that provides the filter, and prints what its sections see. */
const HOST = `
import "reflect-metadata";
import { subscribe } from "node:diagnostics_channel";
import type { IncomingMessage } from "node:http";
import { Controller, Get, Module, Param, Post, Req } from "@nestjs/common";
import { APP_FILTER, NestFactory } from "@nestjs/core";
import { type Lock, LockTable } from "dynamutex";
import { HeldLock, InjectLocks, Locked, LockModule } from "dynamutex/nestjs";
import { LockErrorFilter } from "./lock-error.filter.js";

subscribe("dynamutex:released", (message) => {
  const { name } = message as { readonly name: string };
  if (name.includes("late")) console.log(name, "has ended");
});

@Controller()
class Orders {
  constructor(@InjectLocks() readonly locks: LockTable) {}

  @Post("/orders/:order")
  @Locked((order) => \`order#\${order}\`, { waitMs: 2_000, ttlMs: 1_000 })
  async ship(@Param("order") order: string, @Req() request: IncomingMessage, @HeldLock() lock?: Lock): Promise<string> {
    if (order.startsWith("late")) {
      request.socket.once("close", () => console.log("the client is gone"));
      console.log("ships", order);
      while (!lock?.signal.aborted) await new Promise((resolve) => lock?.signal.addEventListener("abort", resolve));
    }
    return "shipped";
  }

  @Get("/large")
  large(): string {
    return "a".repeat(16_000_000);
  }

  @Post("/elsewhere")
  @Locked("a", { table: "missing" })
  async elsewhere(): Promise<void> {}

  @Post("/close")
  async close(): Promise<void> {
    await this.locks.close();
  }
}

@Module({
  imports: [
    LockModule.forRoot({ tableName: process.env.TABLE ?? "" }),
    LockModule.forRoot({ name: "missing", tableName: "there-is-no-such-table" }),
  ],
  controllers: [Orders],
  providers: [{ provide: APP_FILTER, useClass: LockErrorFilter }],
})
class AppModule {}

const app = await NestFactory.create(AppModule, { logger: ["error", "warn"] });
app.enableShutdownHooks();
app.getHttpServer().closeIdleConnections = () => undefined;
await app.listen(Number(process.env.PORT));
console.log("listens");
`;

let programs: PagePrograms;
let locks: LockTable;

beforeAll(async () => {
  programs = await pagePrograms({ pages: ["docs/guides/nestjs.md"], given: { "host.ts": HOST } });
  locks = new LockTable({ tableName: programs.tableName, client: testClient() });
});

afterAll(async () => {
  await locks.close();
  await programs[Symbol.asyncDispose]();
});

test("docs/guides/nestjs.md: lock-error.filter.ts answers 409 and 503, and logs nothing of a client that has gone", async () => {
  const port = await freePort();
  await using program = programs.start("host.ts", { TABLE: programs.tableName, PORT: String(port) });
  await program.printed("listens");
  const post = (path: string, signal?: AbortSignal) => {
    const asking = request({ port, path, method: "POST", agent: false, signal });
    asking.end();
    return asking;
  };
  const ask = async (path: string) => {
    const [response] = await once(post(path), "response");
    response.resume();
    return [response.statusCode, response.headers["retry-after"]];
  };
  /** Takes the lock of a section away. */
  const lose = async (name: string) => {
    const mutex = locks.mutex(name);
    await mutex.forceUnlock((await mutex.inspect())?.uuid ?? "");
  };

  expect(await ask("/orders/1")).toEqual([201, undefined]);
  const held = await locks.mutex("order#1").lock();
  expect(await ask("/orders/1")).toEqual([409, "1"]);
  await held.unlock();

  const gone = new AbortController();
  const left = once(post("/orders/late-1", gone.signal), "response").catch((error) => error.name);
  await program.printed("ships late-1");
  gone.abort();
  expect(await left).toBe("AbortError");
  await program.printed("the client is gone");
  await lose("order#late-1");
  await program.printed("order#late-1 has ended");
  expect(await ask("/orders/1")).toEqual([201, undefined]); // a request later, its answer is over
  expect(program.lines).toEqual(["listens", "ships late-1", "the client is gone", "order#late-1 has ended"]);

  const lost = ask("/orders/late-2");
  await program.printed("ships late-2");
  await lose("order#late-2");
  expect(await lost).toEqual([500, undefined]);
  await program.printed(/LockLostError.*order#late-2/);

  expect(await ask("/elsewhere")).toEqual([503, "1"]);
  await program.printed(/LockErrorFilter.*there-is-no-such-table/);

  const before = program.lines.length;
  expect(await ask("/close")).toEqual([201, undefined]);
  expect(await ask("/orders/1")).toEqual([503, "1"]);
  expect(program.lines.slice(before).filter((line) => !/^ +at /.test(line))).toEqual([]);

  const [slow] = await once(get({ port, path: "/large", agent: false }), "response"); // its client takes its time to read
  // The shell shows 143.
  program.kill("SIGTERM");
  await refusal(port);
  expect((await text(slow)).length).toBe(16_000_000);
  expect(await program.exit).toEqual({ code: null, signal: "SIGTERM" });
});

/** Resolves when nothing listens at a port any more. */
async function refusal(port: number): Promise<void> {
  for (;;) {
    const socket = connect(port);
    const isRefused = await once(socket, "connect").then(
      () => false,
      () => true,
    );
    socket.destroy();
    if (isRefused) return;
  }
}
