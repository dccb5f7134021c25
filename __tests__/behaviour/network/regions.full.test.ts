import { describe, expect, test } from "@jest/globals";
import { LockConfigError, tableClock } from "../../../lib/index.js";
import { replicatedWriteConflict } from "../../support/fault-proxy/several-regions.js";
import type { RecordedRequest } from "../../support/fault-proxy.js";
import { useScene } from "../../support/scene.js";
import { seededRandom } from "../../support/seeded-random.js";

const scene = useScene();
const FOREVER = { times: Number.POSITIVE_INFINITY };
const isWrite = ({ operation }: RecordedRequest): boolean => /^(Put|Update|Delete)Item$/.test(operation);

/** A host in one of the Regions. */
const host = () => scene.host({ clock: tableClock({ regionSkewMs: 200 }), ttlMs: 10_000 });

describe("a host whose clock allows for several Regions", () => {
  test.each([
    ["guard()", (lock: Held) => lock.guard()],
    ["guard({ document: true })", (lock: Held) => lock.guard({ document: true })],
    ["transactWrite()", (lock: Held) => lock.transactWrite([{ Put: { TableName: "t", Item: { id: { S: "1" } } } }])],
  ])("is refused a %s before anything is sent, with what to do in its place, and keeps its lock", async (_, ask) => {
    await using lock = await host().mutex(scene.name, { fencing: true }).lock();
    scene.proxy.reset();
    const refused = await ask(lock).then(undefined, (error: unknown) => error);
    expect(refused).toBeInstanceOf(LockConfigError);
    expect(refused).toMatchObject({ message: expect.stringMatching(/regionSkewMs.*no guards.*fencing token/) });
    expect([lock.held, scene.proxy.counts()]).toEqual([true, {}]);
  });
});

test("hosts whose writes conflict, applied or not, hold the lock one at a time, lose none and leave no row", async () => {
  const random = seededRandom(25);
  const conflicts = { applied: 0, refused: 0 };
  const conflict = (kind: keyof typeof conflicts) => (request: RecordedRequest) => {
    const isMet = isWrite(request) && random() < 0.15;
    if (isMet) conflicts[kind] += 1;
    return isMet;
  };
  scene.proxy.on(conflict("applied"), replicatedWriteConflict({ applied: true }), FOREVER);
  scene.proxy.on(conflict("refused"), replicatedWriteConflict({ applied: false }), FOREVER);
  let [inside, most, sections] = [0, 0, 0];
  const work = async (): Promise<void> => {
    const mutex = host().mutex(scene.name, { poll: { minMs: 5, maxMs: 20 } });
    for (let run = 0; run < 12; run += 1) {
      await mutex.run(async () => {
        inside += 1;
        most = Math.max(most, inside);
        await mutex.inspect();
        sections += 1;
        inside -= 1;
      });
    }
  };
  await Promise.all([work(), work()]);
  expect([most, sections]).toEqual([1, 24]);
  expect(Math.min(conflicts.applied, conflicts.refused)).toBeGreaterThan(0);
  await scene.quiet();
  expect(await scene.row()).toBeUndefined();
});

type Held = Awaited<ReturnType<ReturnType<ReturnType<typeof scene.host>["mutex"]>["lock"]>>;
