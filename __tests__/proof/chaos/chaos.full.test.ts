import { expect, test } from "@jest/globals";
import { type ChaosReport, figureOf } from "./chaos-report.js";
import { startEngine } from "./engine.js";
import { LOCK_GROUPS } from "./lock-groups.js";
import { runChaos } from "./run.js";

// A run in which nothing happened would prove nothing.
const happened = (report: ChaosReport): boolean => {
  const figure = (title: string, part?: string): number => figureOf(report, title, part);
  return (
    LOCK_GROUPS.every(({ tag }) => figure("sections done", tag) >= 3) &&
    Math.min(figure("takeovers"), figure("losses told"), figure("engine killed")) >= 1 &&
    figure("requests that met a fault") >= 10 &&
    figure("guarded lines sent after the unlock", "refused by the guard") >= 1 &&
    Math.min(figure("tokens resumed"), figure("sections that joined a row")) >= 1
  );
};

test("15 seconds of every fault there is: nobody enters beside a holder, no update is lost, and holders are told", async () => {
  await using engine = await startEngine();
  const seed = Math.floor(2 ** 31 * Math.random());
  const report = await runChaos({ seconds: 15, until: happened, hostsPerGroup: 2, seed, engine });
  expect({ seed, violations: report.violations }).toEqual({ seed, violations: [] });
  expect({ ...report, happened: happened(report) }).toMatchObject({ happened: true });
});
