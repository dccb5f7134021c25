import type { Lock } from "../../lib/index.js";
import { Mutex } from "../../lib/mutex.js";
import { mutexSettings } from "../../lib/options/mutex.js";
import { Sections } from "../../lib/queues/sections.js";
import { Session } from "../../lib/session/session.js";
import { ManualTime } from "../support/manual-time.js";
import { seededRandom } from "../support/seeded-random.js";
import { type Service, slowTable } from "./slow-table.js";

export async function model({
  ttlMs,
  locks,
  takenAtOnce,
  forMs,
  service,
}: {
  readonly ttlMs: number;
  readonly locks: number;
  readonly takenAtOnce: number;
  readonly forMs: number;
  readonly service: Service;
}) {
  const time = new ManualTime();
  const { store, served } = slowTable(time, service);
  const session = new Session({ store, clock: time.clock({ maxSkewMs: 500 }), owner: "host", random: seededRandom(1) });
  const sections = new Sections(session);
  const settings = mutexSettings({ ttlMs });
  const held: Lock[] = [];
  const failures: string[] = [];
  let lost = 0;
  let next = 0;
  let takenAt = 0;
  const taker = async (): Promise<void> => {
    for (let index = next++; index < locks; index = next++) {
      try {
        const lock = await new Mutex(sections, `lock-${index}`, settings).lock();
        lock.signal.addEventListener("abort", () => {
          lost += 1;
        });
        held.push(lock);
        takenAt = time.elapsed;
      } catch (error) {
        failures.push(String(error));
      }
    }
  };
  for (let count = 0; count < takenAtOnce; count += 1) void taker();
  const line: string[] = [];
  for (let at = 0; at < forMs; at += 1000) {
    const before = served();
    await time.advance(1000);
    line.push(
      `${held.length}/${lost} ${served() - before}/s w${session.scheduler.width} t${session.scheduler.typicalMs?.toFixed(0)}`,
    );
  }
  return { held: held.length, lost, failures: failures.length, first: failures[0], takenAt, line };
}
const cap = (f: (s: number) => number) => ({ serviceMs: (ms: number) => 1000 / f(ms / 1000), distanceMs: 4 });
const run = async (name: string, service: Service, more = {}) => {
  const t = performance.now();
  const { line, ...rest } = await model({ ttlMs: 3000, locks: 500, takenAtOnce: 32, forMs: 30_000, service, ...more });
  console.log(name, JSON.stringify(rest), `${(performance.now() - t).toFixed(0)} ms`);
  if (process.argv[2]) console.log("   " + line.join(" | "));
};
await run(
  "80/s",
  cap(() => 80),
);
await run(
  "150/s",
  cap(() => 150),
);
await run(
  "220/s",
  cap(() => 220),
);
await run(
  "20..300/s in 10 s",
  cap((s) => Math.min(300, 20 + 28 * s)),
);
await run(
  "10..600/s in 10 s",
  cap((s) => Math.min(600, 10 + 59 * s)),
);
for (const stall of [0.3, 0.7, 1, 1.3])
  await run(
    `500/s, and 10/s for ${stall} s every 3 s`,
    cap((s) => ((s + 2) % 3 < stall ? 10 : 500)),
  );
for (const stall of [0.7, 1, 1.3])
  await run(
    `800/s, and 10/s for ${stall} s every 3 s`,
    cap((s) => ((s + 2) % 3 < stall ? 10 : 800)),
  );
await run("far", { serviceMs: () => 1, distanceMs: 300 }, { ttlMs: 6000, locks: 700, takenAtOnce: 700 });
