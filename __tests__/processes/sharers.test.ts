import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "@jest/globals";
import { type Line, Register } from "../chaos/register.js";
import type { Host } from "../support/host-process.js";
import { startLockHost } from "../support/lock-host.js";
import { seededRandom } from "../support/seeded-random.js";
import { createTestTable, testClient, testEndpoint } from "../support/table.js";
import { type Crowd, crowdsByOrder, crowdsByTime, forbidden } from "./crowd.js";
import type { SharerConfig, SharerMessage, Work } from "./hosts/sharer.js";

const client = testClient();
const PROCESSES = 8;
const PERMITS = 3;
const TTL_MS = 2_000;

/** Of each process. The whole length is 200. */
const SECTIONS = Number(process.env.SHARER_SECTIONS ?? 8);

const WORK = ["semaphore", "sharedMutex"] as const;

/** One of the processes, and whoever takes its place after a kill: together they run its sections. */
class Sharer {
  host: Host<SharerMessage>;
  readonly #index: number;
  readonly #tableName: string;
  readonly #before: Host<SharerMessage>[] = [];

  constructor(tableName: string, index: number) {
    this.#tableName = tableName;
    this.#index = index;
    this.host = this.#start();
  }

  /** The sections that have ended, one way or the other. */
  get ended(): SharerMessage[] {
    return this.messages.filter(({ kind }) => kind !== "entered");
  }

  get messages(): SharerMessage[] {
    return [...new Set([...this.#before, this.host])].flatMap(({ messages }) => messages);
  }

  async restart(): Promise<void> {
    this.host.kill("SIGKILL");
    await this.host.exit;
    this.#before.push(this.host);
    this.host = this.#start();
  }

  #start(): Host<SharerMessage> {
    const done = (work: Work): number =>
      this.#before.length && this.ended.filter((message) => message.work === work).length;
    const sections = { semaphore: SECTIONS / 2 - done("semaphore"), sharedMutex: SECTIONS / 2 - done("sharedMutex") };
    const config: SharerConfig = {
      tableName: this.#tableName,
      host: `${this.#index}.${this.#before.length}`,
      options: { ttlMs: TTL_MS, handOverMs: 100, poll: { minMs: 10, maxMs: 60 } },
      permits: PERMITS,
      sections,
    };
    return startLockHost<SharerMessage>(new URL("./hosts/sharer.js", import.meta.url), {
      endpoint: testEndpoint(),
      config,
    });
  }
}

describe("whoever checks the log", () => {
  const line = (version: number, section: string, at = version): Line => {
    return { version, section, step: 1, after: "", checkedFrom: at, checkedTo: at };
  };
  const linesOf = (...sections: readonly string[]): Line[] =>
    sections.map((section, index) => line(index + 1, section));

  test.each<readonly [string, readonly string[]]>([
    [
      "four permits of three",
      ["permit:a", "permit:b", "permit:c", "permit:d", "permit:a", "permit:b", "permit:c", "permit:d"],
    ],
    ["a writer beside a reader", ["shared:a", "exclusive:b", "shared:a", "exclusive:b"]],
    ["a reader within a writer's section", ["exclusive:a", "shared:b", "exclusive:a", "shared:b"]],
    ["two writers", ["exclusive:a", "exclusive:b", "exclusive:a", "exclusive:b"]],
  ])("finds %s, by the order and by the time", (_, sections) => {
    const lines = linesOf(...sections);
    for (const crowds of [crowdsByOrder(lines), crowdsByTime(lines)]) expect(forbidden(crowds, 3)).not.toEqual([]);
  });

  test.each<readonly [string, readonly string[]]>([
    ["three permits", ["permit:a", "permit:b", "permit:c", "permit:a", "permit:d", "permit:b", "permit:c", "permit:d"]],
    ["readers beside one another", ["shared:a", "shared:b", "shared:c", "shared:b", "shared:a", "shared:c"]],
    ["a writer after a reader", ["shared:a", "shared:a", "exclusive:b", "exclusive:b", "shared:c"]],
  ])("has nothing against %s", (_, sections) => {
    const lines = linesOf(...sections);
    for (const crowds of [crowdsByOrder(lines), crowdsByTime(lines)]) expect(forbidden(crowds, 3)).toEqual([]);
  });
});

test(`${PROCESSES} processes x ${SECTIONS} sections, killed and suspended: never more than ${PERMITS} permits at once, never a writer beside anybody`, async () => {
  const tableName = await createTestTable();
  const random = seededRandom(12);
  const sharers = Array.from({ length: PROCESSES }, (_, index) => new Sharer(tableName, index));
  const total = PROCESSES * SECTIONS;
  const ended = (): number => sharers.reduce((sum, sharer) => sum + sharer.ended.length, 0);
  const counts = { killed: 0, suspended: 0 };
  const isLong = process.env.SHARER_SECTIONS !== undefined;
  const tell = (): void => {
    const bySharer = sharers.map((sharer) => sharer.ended.length).join(" ");
    process.stderr.write(`${Math.round(performance.now() / 1_000)} s: ${bySharer} ${JSON.stringify(counts)}\n`);
  };
  const telling = isLong ? setInterval(tell, 5_000) : undefined;
  const [kills, suspends] = [Math.ceil(total / 80) + 1, Math.ceil(total / 60) + 1];

  /** A process that failed runs no more sections: nobody is to wait for them. */
  function checkAlive(): void {
    for (const { host } of sharers) if (host.stderr.includes("Error")) throw new Error(host.stderr);
  }

  /** Comes over one that is in a section, once so many sections have ended. */
  async function mischief(times: number, act: (sharer: Sharer) => Promise<void>): Promise<void> {
    for (let time = 1; time <= times; time += 1) {
      while (ended() < (total * time) / (times + 1)) {
        checkAlive();
        await sleep(20);
      }
      const running = sharers.filter(({ host }) => host.running);
      const sharer = running[Math.floor(random() * running.length)] as Sharer;
      await sharer.host.next(({ kind }) => kind === "entered").catch(() => undefined);
      if (sharer.host.running) await act(sharer);
    }
  }

  try {
    await Promise.all([
      mischief(kills, async (sharer) => {
        counts.killed += 1;
        await sharer.restart();
      }),
      mischief(suspends, async ({ host }) => {
        await host.suspend();
        counts.suspended += 1;
        await sleep((1.1 + random() / 2) * TTL_MS);
        host.resume();
      }),
    ]);
    for (const sharer of sharers) {
      const { host } = sharer;
      expect({ ...(await host.exit), stderr: host.stderr }).toMatchObject({ code: 0 });
    }
  } finally {
    clearInterval(telling);
    for (const { host } of sharers) await host[Symbol.asyncDispose]();
  }

  const most: Record<string, number> = {};
  const violations: Crowd[] = [];
  for (const work of WORK) {
    const lines = await new Register(client, tableName, work).lines();
    const crowds = [...crowdsByOrder(lines), ...crowdsByTime(lines)];
    violations.push(...forbidden(crowds, PERMITS));
    most[work] = Math.max(...crowds.map(({ sections }) => sections.length));
    expect(lines.map(({ version }) => version)).toEqual(lines.map((_, index) => index + 1));
  }
  const lost = sharers.flatMap(({ messages }) => messages.filter(({ kind }) => kind === "lost")).length;
  if (process.env.SHARER_SECTIONS !== undefined)
    console.log({ sections: ended(), ...counts, lost, most, violations: violations.length });
  expect(violations).toEqual([]);
  expect(ended()).toBeGreaterThanOrEqual(total);
  expect(counts.killed).toBeGreaterThan(0);
  expect(counts.suspended).toBeGreaterThan(0);
  // They did run beside one another, as far as they may.
  expect(most.semaphore).toBeGreaterThan(1);
  expect(most.sharedMutex).toBeGreaterThan(1);
}, 900_000);
