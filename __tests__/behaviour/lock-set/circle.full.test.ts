import { expect, test } from "@jest/globals";
import type { LockTable } from "../../../lib/index.js";
import { useScene } from "../../support/scene.js";

const scene = useScene();

const ROUNDS = 20;
const SETS = [
  ["a", "b"],
  ["b", "c"],
  ["c", "a"],
];

test("3 sets that overlap in a circle, 20 rounds each: no deadlock, no overlap, nothing held while waiting", async () => {
  const inside = new Map<string, number>();
  const overlaps: string[] = [];
  const partial: string[] = [];
  let rounds = 0;
  const play = async (locks: LockTable, names: readonly string[], host: number): Promise<void> => {
    for (let round = 0; round < ROUNDS; round++) {
      await using set = await locks.lockAll(names.map((name) => `${scene.name}-${name}`));
      for (const name of names) {
        if (inside.has(name)) overlaps.push(`${name}: ${inside.get(name)} and ${host}`);
        inside.set(name, host);
      }
      await new Promise((resolve) => setTimeout(resolve, 2));
      set.assertHeld();
      for (const name of names) {
        if ((await scene.row(`${scene.name}-${name}`))?.uuid !== set.locks.get(`${scene.name}-${name}`)?.uuid) {
          partial.push(name);
        }
      }
      for (const name of names) inside.delete(name);
      rounds += 1;
    }
  };
  const hosts = SETS.map((_, index) =>
    scene.host({ tag: `host-${index}`, ttlMs: 10_000, poll: { minMs: 5, maxMs: 40 } }),
  );
  await Promise.all(hosts.map((locks, index) => play(locks, SETS[index] ?? [], index)));

  expect(rounds).toBe(SETS.length * ROUNDS);
  expect([overlaps, partial]).toEqual([[], []]);
  // Whatever wrote a row wrote both of its set: so none was ever held by somebody who waited.
  const granted = scene.proxy.select(
    ({ operation, table }) => operation === "TransactWriteItems" && table?.status === 200,
  );
  expect(granted).toHaveLength(SETS.length * ROUNDS);
  expect(scene.proxy.count("PutItem")).toBe(0);
  // A refused transaction is followed by at least one look before the next one.
  for (let index = 0; index < SETS.length; index++) {
    const refused = scene.proxy.select(
      ({ client, operation, table }) =>
        client === `host-${index}` && operation === "TransactWriteItems" && table?.status === 400,
    );
    const looks = scene.proxy.count({ client: `host-${index}`, operation: "GetItem" });
    expect(looks).toBeGreaterThanOrEqual(refused.length);
  }
});
