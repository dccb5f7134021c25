import { afterEach, expect, test } from "@jest/globals";
import { systemClock } from "../../../lib/index.js";
import type { Host } from "../../support/host-process.js";
import { startLockHost } from "../../support/lock-host.js";
import { now } from "../../support/monotonic.js";
import { QueueRows, stands } from "../../support/queue.js";
import { useScene } from "../../support/scene.js";
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

function overlaps(inOrder: readonly SectionMessage[]): number {
  return inOrder.filter(({ entered }, index) => entered < (inOrder[index - 1]?.left ?? 0)).length;
}

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
});
