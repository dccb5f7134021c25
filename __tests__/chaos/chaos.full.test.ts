import { expect, test } from "@jest/globals";
import { type ChaosReport, total } from "./chaos-report.js";
import { startEngine } from "./engine.js";
import { LOCK_GROUPS } from "./lock-groups.js";
import { runChaos } from "./run.js";

// A run in which nothing happened would prove nothing.
const happened = ({
  sectionsDone,
  takeovers,
  lossesTold,
  requestFaults,
  mischief,
  sentLate,
  ...more
}: ChaosReport): boolean =>
  LOCK_GROUPS.every(({ title }) => (sectionsDone[title] ?? 0) >= 3) &&
  Math.min(total(takeovers), total(lossesTold), total(requestFaults) / 10, mischief.engineKilled) >= 1 &&
  Math.min(sentLate["refused by the guard"] ?? 0, more.handOffs.resumed, more.joined) >= 1;

test("15 seconds of every fault there is: nobody enters beside a holder, no update is lost, and holders are told", async () => {
  await using engine = await startEngine();
  const seed = Math.floor(2 ** 31 * Math.random());
  const report = await runChaos({ seconds: 15, until: happened, hostsPerGroup: 2, seed, engine });
  expect({ seed, violations: report.violations }).toEqual({ seed, violations: [] });
  expect({ ...report, happened: happened(report) }).toMatchObject({ happened: true });
}, 300_000);
