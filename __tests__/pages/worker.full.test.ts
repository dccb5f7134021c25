import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { LockTable } from "dynamutex";
import { Desk } from "../support/desk.js";
import { type PagePrograms, pagePrograms } from "../support/page-programs.js";
import type { RunningProgram } from "../support/running-program.js";
import { testClient } from "../support/table.js";

/** The reader's queue and work: they do what the test says. */
const JOBS = `
const desk = process.env.DESK;
const tell = async (what: string) => void (await fetch(desk + what, { method: "PUT" }));

process.once("SIGTERM", () => tell("/stopping"));

export interface Job {
  readonly customer: string;
  done(): Promise<void>;
  giveBack(): Promise<void>;
}

export async function nextJob(signal: AbortSignal): Promise<Job> {
  const customer = await (await fetch(desk + "/next", { signal })).text();
  return { customer, done: () => tell("/done/" + customer), giveBack: () => tell("/back/" + customer) };
}

export async function work({ customer }: Job, signal: AbortSignal): Promise<void> {
  const told = await (await fetch(desk + "/work/" + customer, { method: "POST", signal })).text();
  if (told === "fail") throw new Error("no such customer");
}
`;

let programs: PagePrograms;
let locks: LockTable;

beforeAll(async () => {
  const given = { "jobs.ts": JOBS };
  programs = await pagePrograms({ pages: ["docs/guides/shutdown.md"], given, only: ["worker.ts"] });
  locks = new LockTable({ tableName: programs.tableName, client: testClient() });
});

afterAll(async () => {
  await locks.close();
  await programs[Symbol.asyncDispose]();
});

/** What a worker that has ended did, in order. */
async function ended(worker: RunningProgram, desk: Desk): Promise<readonly string[]> {
  expect(await worker.exit).toEqual({ code: 0, signal: null });
  return desk.asked.filter((asked) => asked !== "PUT /stopping");
}

test("trap 53: takes no job after SIGTERM, finishes the one that it has, and ends", async () => {
  await using desk = new Desk();
  await using worker = programs.start("worker.ts", { DESK: await desk.start() });
  await desk.answer("GET /next", "ann");
  await desk.hears("POST /work/ann");
  worker.kill("SIGTERM");
  await desk.hears("PUT /stopping");
  worker.kill("SIGTERM"); // as npm does where the whole process group gets one
  await desk.answer("POST /work/ann");
  expect(await ended(worker, desk)).toEqual(["GET /next", "POST /work/ann", "PUT /done/ann"]);
  expect(worker.lines).toEqual([]);
});

test.each(["SIGTERM", "SIGINT"] as const)("trap 53: ends by %s while it waits for a job", async (signal) => {
  await using desk = new Desk();
  await using worker = programs.start("worker.ts", { DESK: await desk.start() });
  await desk.hears("GET /next");
  worker.kill(signal);
  expect(await ended(worker, desk)).toEqual(["GET /next"]);
  expect(worker.lines).toEqual([]);
});

test("gives a job back that still waits for its lock", async () => {
  await using desk = new Desk();
  await using held = await locks.mutex("customer ben").lock();
  await using worker = programs.start("worker.ts", { DESK: await desk.start() });
  await desk.answer("GET /next", "ben");
  while (!held.wanted) await held.extend(); // so it waits
  worker.kill("SIGTERM");
  expect(await ended(worker, desk)).toEqual(["GET /next", "PUT /back/ben"]);
  expect(worker.lines.join("\n")).toMatch(/^the job of ben goes back: LockError: This LockTable is closed/);
});

test.each([true, false])("gives a job back whose lock Ctrl-C revokes, during a drain: %s", async (drains) => {
  await using desk = new Desk();
  await using worker = programs.start("worker.ts", { DESK: await desk.start() });
  await desk.answer("GET /next", "cas");
  await desk.hears("POST /work/cas");
  if (drains) {
    worker.kill("SIGTERM");
    await desk.hears("PUT /stopping");
  }
  worker.kill("SIGINT");
  expect(await ended(worker, desk)).toEqual(["GET /next", "POST /work/cas", "PUT /back/cas"]);
  expect(worker.lines.join("\n")).toMatch(/^the job of cas goes back: [\s\S]*LockLostError/);
  expect(await locks.mutex("customer cas").inspect()).toBeNull();
});

test("gives a job back that fails, says why, and takes the next", async () => {
  await using desk = new Desk();
  await using worker = programs.start("worker.ts", { DESK: await desk.start() });
  await desk.answer("GET /next", "dee");
  await desk.answer("POST /work/dee", "fail");
  await desk.hears("GET /next", 2);
  worker.kill("SIGTERM");
  expect(await ended(worker, desk)).toEqual(["GET /next", "POST /work/dee", "PUT /back/dee", "GET /next"]);
  expect(worker.lines.join("\n")).toMatch(/^the job of dee goes back: Error: no such customer/);
});
