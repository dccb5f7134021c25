import { expect, test } from "@jest/globals";
import { type ChaosReport, total } from "./chaos-report.js";
import { startEngine } from "./engine.js";
import { runChaos } from "./run.js";

// A run in which nothing happened would prove nothing.
const happened = ({ sectionsDone, takeovers, lossesTold, requestFaults, mischief }: ChaosReport): boolean =>
  Math.min(sectionsDone / 10, total(takeovers), total(lossesTold), total(requestFaults) / 10, mischief.engineKilled) >=
  1;

test("15 seconds of every fault there is: nobody enters beside a holder, no update is lost, and holders are told", async () => {
  await using engine = await startEngine();
  const seed = Math.floor(2 ** 31 * Math.random());
  const report = await runChaos({ seconds: 15, until: happened, hostsPerLock: 2, seed, engine });
  expect({ seed, violations: report.violations }).toEqual({ seed, violations: [] });
  expect({ ...report, happened: happened(report) }).toMatchObject({ happened: true });
}, 300_000);
