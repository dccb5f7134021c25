import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { type MutexOptions, systemClock } from "../../lib/index.js";
import type { Fault, RecordedRequest } from "../support/fault-proxy.js";
import type { Host } from "../support/host-process.js";
import { startLockHost } from "../support/lock-host.js";
import { now } from "../support/monotonic.js";
import { isDraw, isEnqueue, isTake, QueueRows, stands } from "../support/queue.js";
import { useScene } from "../support/scene.js";
import type { SectionMessage, SectionsConfig } from "./hosts/sections.js";

const hosts: Host<SectionMessage>[] = [];

afterEach(async () => {
  await Promise.all(hosts.splice(0).map((host) => host[Symbol.asyncDispose]()));
});

const scene = useScene();
const rows = new QueueRows(scene);

function start(owner: string, config: Omit<SectionsConfig, "tableName" | "name" | "owner">): Host<SectionMessage> {
  const { tableName, name } = scene;
  const host = startLockHost<SectionMessage>(new URL("./hosts/sections.js", import.meta.url), {
    endpoint: scene.proxy.endpointFor(owner),
    config: { tableName, name, owner, ...config } satisfies SectionsConfig,
  });
  hosts.push(host);
  return host;
}

/** Lets such requests to the table one at a time, and notes what was applied in which order: that of the table. */
function oneAtATime(applied: RecordedRequest[]): Fault {
  let last: Promise<unknown> = Promise.resolve();
  return {
    kind: "oneAtATime",
    apply: async (exchange) => {
      const mine = last.then(async () => {
        const reply = await exchange.forward();
        applied.push({ ...exchange.request, status: reply.status });
        return reply;
      });
      last = mine.catch(() => undefined);
      await exchange.answer(await mine);
    },
  };
}

const ownerIn = ({ body }: RecordedRequest): string => body.Item?.owner?.S ?? "";

/** A request that says whether somebody waits, and that a claim may rely on. */
const isLook = ({ operation, body }: RecordedRequest): boolean => operation === "Query" && body.ConsistentRead === true;

interface Entry {
  readonly owner: string;
  /** Its ticket, as the sort key says it; undefined for one that found nobody waiting. */
  readonly ticket: string | undefined;
  /** When its row came to the table, the look on which it took the lock, and that: places in one order. */
  readonly cameAt: number;
  readonly lookedAt: number;
  readonly tookAt: number;
}

/** Who entered and how, by what the table did in this order. Each process has one section at a time. */
function entriesOf(applied: readonly RecordedRequest[]): Entry[] {
  return applied.flatMap((request, tookAt) => {
    if (!isTake(request) || request.status !== 200) return [];
    const owner = ownerIn(request);
    const cameAt = applied.findIndex((it) => isEnqueue(it) && it.status === 200 && ownerIn(it) === owner);
    const lookedAt = applied.findLastIndex((it, at) => at < tookAt && isLook(it) && it.client === request.client);
    return [{ owner, ticket: applied[cameAt]?.body.Item?.sort?.S, cameAt, lookedAt, tookAt }];
  });
}

/** Who entered although an earlier ticket's row was there when they looked, and its waiter entered later. */
function trespasses(entries: readonly Entry[]): (readonly [Entry, Entry])[] {
  const waiters = entries.filter(({ ticket }) => ticket !== undefined);
  return entries.flatMap((entry) =>
    waiters
      .filter(({ cameAt, tookAt }) => cameAt < entry.lookedAt && tookAt > entry.tookAt)
      .filter(({ ticket = "" }) => entry.ticket === undefined || ticket < entry.ticket)
      .map((overtaken) => [entry, overtaken] as const),
  );
}

/** How many pairs of neighbours came in another order than this. */
function inversions(inOrder: readonly string[], cameAt: (owner: string) => number): number {
  const places = inOrder.map(cameAt);
  return places.filter((place, index) => place < (places[index - 1] ?? 0)).length;
}

function overlaps(inOrder: readonly SectionMessage[]): number {
  return inOrder.filter(({ entered }, index) => entered < (inOrder[index - 1]?.left ?? 0)).length;
}

describe("6 processes x 20 sections with staggered arrival", () => {
  const PROCESSES = 6;
  const SECTIONS = 20;
  let applied: RecordedRequest[];

  beforeEach(() => {
    applied = [];
  });

  async function run(mutex: MutexOptions): Promise<SectionMessage[]> {
    const config = { mutex, sections: SECTIONS, pauseMs: 30, stayMs: 2 };
    const running = Array.from({ length: PROCESSES }, (_, index) => start(`process-${index}`, config));
    for (const host of running) expect({ ...(await host.exit), stderr: host.stderr }).toMatchObject({ code: 0 });
    const sections = running.flatMap(({ messages }) => messages);
    expect(sections).toHaveLength(PROCESSES * SECTIONS);
    return sections.sort((one, other) => one.entered - other.entered);
  }

  test("fair: they enter in the order of their tickets, but for rows that came after a look, one at a time", async () => {
    const isOrdered = (request: RecordedRequest) => isEnqueue(request) || isLook(request) || isTake(request);
    scene.proxy.on(isOrdered, oneAtATime(applied), { times: Number.POSITIVE_INFINITY });
    const sections = await run({ fair: true, ttlMs: 20_000, poll: { minMs: 10, maxMs: 50 } });
    expect(overlaps(sections)).toBe(0);
    const entries = entriesOf(applied);
    expect(entries.map(({ owner }) => owner)).toEqual(sections.map(({ owner }) => owner));
    // Some found nobody waiting, and have no row.
    const queued = entries.filter(({ ticket }) => ticket !== undefined);
    expect(queued.length).toBeGreaterThan((PROCESSES * SECTIONS) / 2);
    expect(trespasses(entries)).toEqual([]);
    // Nobody draws twice.
    expect(scene.proxy.count(isDraw)).toBe(queued.length);
    expect(await rows.sorts()).toEqual(["tickets"]);
  }, 240_000);

  test("plain: the same count finds many who overtook, of those who had asked the table before", async () => {
    scene.proxy.on(isTake, oneAtATime(applied), { times: Number.POSITIVE_INFINITY });
    const sections = await run({ ttlMs: 20_000, poll: { minMs: 10, maxMs: 50 } });
    expect(overlaps(sections)).toBe(0);
    const [owners, asked] = [sections.map(({ owner }) => owner), applied.map(ownerIn)];
    expect(inversions(owners, (owner) => asked.indexOf(owner))).toBeGreaterThan(5);
  }, 120_000);
});

test("of 12 waiters 3 are killed and 2 frozen past their lease: the others enter in order, and the table is clean", async () => {
  const ttlMs = 12_000;
  const mutex = { fair: true, ttlMs, poll: { minMs: 10, maxMs: 50 } };
  const clock = systemClock({ maxSkewMs: 0 });
  const holder = await scene.host({ tag: "holder", clock }).mutex(scene.name, { fair: true }).lock();
  const all = Array.from({ length: 12 }, (_, index) =>
    start(`waiter-${index}`, { mutex, sections: 1, pauseMs: 500, stayMs: 20 }),
  );
  const standing = (owner: string) => hosts[Number(/-(\d+)/.exec(owner)?.[1])] as Host<SectionMessage>;
  await scene.proxy.until(() => all.every((_, index) => stands(scene.proxy.requests, `waiter-${index}`)));
  const queue = await rows.owners();
  expect(queue).toHaveLength(all.length);
  // The first, some in the middle, two in a row; not the last, whom nobody but a newcomer would ever pass.
  const killed = [0, 4, 5].map((place) => queue[place] as string);
  const frozen = [1, 8].map((place) => queue[place] as string);
  for (const owner of frozen) await standing(owner).suspend();
  for (const owner of killed) standing(owner).kill("SIGKILL");
  await Promise.all(killed.map((owner) => standing(owner).exit));
  // It was while the others stood in the queue that they died: nobody had lost a place before.
  expect(await rows.owners()).toEqual(queue);
  const diedAt = now();
  await holder.unlock();

  const alive = queue.filter((owner) => !killed.includes(owner) && !frozen.includes(owner));
  for (const owner of alive) await standing(owner).exit;
  const sections = alive.map((owner) => standing(owner).messages[0] as SectionMessage);
  const inOrder = [...sections].sort((one, other) => one.entered - other.entered);
  expect(inOrder.map(({ owner }) => owner)).toEqual(alive);
  expect(overlaps(inOrder)).toBe(0);
  // Their leases run out side by side: together they delay nobody by more than one of them would.
  expect((inOrder.at(-1)?.entered ?? Number.NaN) - diedAt).toBeLessThan(2 * ttlMs);

  // Whoever comes back finds its place gone, and queues again.
  for (const owner of frozen) standing(owner).resume();
  for (const owner of frozen) expect((await standing(owner).exit).code).toBe(0);
  const returned = frozen.map((owner) => standing(owner).messages[0] as SectionMessage);
  for (const { entered } of returned) expect(entered).toBeGreaterThan(inOrder.at(-1)?.left ?? Number.NaN);
  expect(await rows.sorts()).toEqual(["tickets"]);
}, 120_000);
