import { setTimeout as sleep } from "node:timers/promises";
import type { Cut } from "../../support/fault-proxy/links.js";
import type { FaultProxy } from "../../support/fault-proxy.js";
import { type Random, seededRandom } from "../../support/seeded-random.js";
import type { Engine } from "./engine.js";
import type { Slot } from "./slot.js";

/** What is done to processes and links, beside what the proxy does to single requests. */
export interface MischiefCounts {
  hostKilled: number;
  hostSuspended: number;
  hostClosed: number;
  hostCutOff: number;
  /** How often all pooled connections of a host died. */
  connectionsKilled: number;
  engineKilled: number;
  /** How long there was no engine, all in all. */
  engineDownMs: number;
}

interface Scene {
  readonly slots: readonly Slot[];
  readonly proxy: FaultProxy;
  readonly engine: Engine;
  readonly engineEveryMs: readonly [number, number];
  readonly ttlMs: number;
  readonly seed: number;
}

/** So many processes there are for each that is suspended, and for each that is cut off, at a time. */
const HOSTS_PER_LANE = 6;

/** How long is waited, between two of a kind, for a section to end, so that a slow machine gets anything done at all. */
const LONGEST_GRACE_MS = 8_000;

/**
 * Makes mischief until `enough`: each kind at its own pace, so that they meet. Most of it befalls a host that is in a
 * section. Resolves when what was broken is whole again.
 */
export async function makeMischief(scene: Scene, counts: MischiefCounts, enough: AbortSignal): Promise<void> {
  const { slots, proxy, engine, engineEveryMs, ttlMs, seed } = scene;
  const every = async (name: string, [from, to]: readonly [number, number], act: (random: Random) => Promise<void>) => {
    const random = seededRandom(seed, name);
    while (await pause(between(from, to, random()), enough)) {
      const before = sectionsEnded(slots);
      await act(random);
      const graceEnds = performance.now() + LONGEST_GRACE_MS;
      while (sectionsEnded(slots) === before && performance.now() < graceEnds) {
        if (!(await pause(100, enough))) return;
      }
    }
  };
  const lanes = lanesOf(slots);
  await Promise.all([
    every("kill", [1_000, 2_500], async (random) => {
      const slot = aim(slots, random);
      if (slot.host.kill("SIGKILL")) counts.hostKilled += 1;
      await slot.host.exit;
      await pause(1_000 * random(), enough);
      slot.start();
    }),
    every("revive", [200, 600], async () => {
      for (const slot of slots.filter(({ hasKilledItself }) => hasKilledItself)) {
        counts.hostKilled += 1;
        slot.start();
      }
    }),
    every("close", [2_000, 5_000], async (random) => {
      const slot = aim(slots, random);
      // Its sections have less than a lease to end.
      if (slot.host.kill("SIGTERM")) counts.hostClosed += 1;
      await slot.host.exit;
      slot.start();
    }),
    ...lanes.map((lane, index) =>
      every(`suspend ${index}`, [300, 1_200], async (random) => {
        const { host } = aim(lane, random);
        await host.suspend();
        counts.hostSuspended += 1;
        await pause(between(1.1, 1.7, random()) * ttlMs, enough);
        host.resume();
      }),
    ),
    ...lanes.map((lane, index) =>
      every(`cut off ${index}`, [2_000, 5_000], async (random) => {
        const { tag } = aim(lane, random);
        const how: Cut = random() < 0.5 ? "hang" : "reset";
        proxy.partition(tag, how);
        counts.hostCutOff += 1;
        await pause(between(1, 2.2, random()) * ttlMs, enough);
        proxy.heal(tag);
      }),
    ),
    every("connections", [1_000, 3_000], async (random) => {
      const how: Cut = random() < 0.5 ? "hang" : "reset";
      proxy.killConnections(how, aim(slots, random).tag);
      counts.connectionsKilled += 1;
    }),
    every("engine", engineEveryMs, async () => {
      counts.engineKilled += 1;
      const killedAt = performance.now();
      await engine.killAndRestart();
      const downMs = performance.now() - killedAt;
      counts.engineDownMs += downMs;
      // A start takes 2 s or 40 s, by how busy the machine is: most of the time there has to be an engine.
      await pause(5 * downMs, enough);
    }),
  ]);
}

/** Chooses a host, most often one that is in a section. */
function aim(slots: readonly Slot[], random: Random): Slot {
  const inSection = slots.filter((slot) => slot.inSection);
  const targets = inSection.length > 0 && random() < 0.9 ? inSection : slots;
  return targets[Math.floor(targets.length * random())] as Slot;
}

/** Each host is in one lane, so that no two acts of a kind befall it at once. Those of a lock are in different ones. */
function lanesOf(slots: readonly Slot[]): (readonly Slot[])[] {
  const count = Math.ceil(slots.length / HOSTS_PER_LANE);
  return Array.from({ length: count }, (_, lane) => slots.filter((_, index) => index % count === lane));
}

function sectionsEnded(slots: readonly Slot[]): number {
  return slots.reduce((sum, slot) => sum + slot.sectionsEnded, 0);
}

/** @returns whether there is more to do. */
export async function pause(ms: number, enough: AbortSignal): Promise<boolean> {
  await sleep(ms, undefined, { signal: enough }).catch(() => undefined);
  return !enough.aborted;
}

function between(from: number, to: number, share: number): number {
  return from + share * (to - from);
}
