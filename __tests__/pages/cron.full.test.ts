import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { type PagePrograms, pagePrograms } from "../support/page-programs.js";

/**
 * The reader's job, and the clock of its host: it stands a moment before a fire, and then at the instant at which the host
 * wakes up.
 */
const INVOICES = `
const { FIRES_AT = "", WAKES_AT = "", FAILS } = process.env;
const RealDate = Date;
let now = RealDate.parse(FIRES_AT) - 300;
setTimeout(() => (now = RealDate.parse(WAKES_AT)), 50);
globalThis.Date = class extends RealDate {
  constructor(...values: []) {
    super(...(values.length === 0 ? [now] : values) as []);
  }
  static override now() {
    return now;
  }
} as DateConstructor;

export async function sendInvoices(signal?: AbortSignal): Promise<void> {
  console.log("the job runs");
  if (process.env.LASTS_MS !== undefined) await new Promise((done) => setTimeout(done, Number(process.env.LASTS_MS)));
  if (process.env.LASTS_MS !== undefined) console.log("the job ended");
  signal?.throwIfAborted();
  if (FAILS !== undefined) throw new Error("the mail server is down");
}
`;

let programs: PagePrograms;

beforeAll(async () => {
  programs = await pagePrograms({ pages: ["docs/guides/cron.md"], given: { "invoices.ts": INVOICES } });
});

afterAll(async () => {
  await programs[Symbol.asyncDispose]();
});

/** What a host prints that wakes up then, by default for a fire in this minute, and gets SIGTERM and Ctrl-C after it. */
async function host(file: string, wakesAt: string, env: Readonly<Record<string, string>> = {}): Promise<string[]> {
  const fire = wakesAt.replace(/:[\d.]+Z$/, ":00.000Z");
  await using program = programs.start(file, { FIRES_AT: fire, WAKES_AT: wakesAt, ...env });
  await program.printed(/^(sent|not here.*|not-elected|the job ended|Error: .*)$/);
  program.killAtOnce("SIGTERM", "SIGINT");
  const { code } = await program.exit;
  expect(code).toBe(0);
  return program.lines.filter((line) => !/^ +at |^}/.test(line));
}

// Six in Berlin is five in UTC. The table's clock names the tick, whatever the hosts' clocks show: it is that of the day of the test.
test("trap 53: hosts of croner that wake up at, some ms after, and minutes after the time run a tick once", async () => {
  const hosts = ["05:00:00.000", "05:00:00.040", "05:00:01.700", "05:03:00.000"];
  const printed: string[] = [];
  const env = { FIRES_AT: "2026-11-26T05:00:00.000Z" };
  for (const time of hosts) printed.push(...(await host("croner.ts", `2026-11-26T${time}Z`, env)));
  expect(printed).toEqual(["the job runs", "sent", "not here: done", "not here: done", "not here: done"]);
});

test("trap 53: the daily program of croner runs again until it has worked, and then not again on this day", async () => {
  const failed = ["the job runs", "Error: the mail server is down"];
  const day = (time: string) => `2026-11-26T${time}Z`;
  expect(await host("daily.ts", day("05:00:00.020"), { FAILS: "yes" })).toEqual(failed);
  expect(await host("daily.ts", day("05:05:00.000"), { FAILS: "yes" })).toEqual(failed);
  expect(await host("daily.ts", day("05:10:00.001"))).toEqual(["the job runs", "sent"]);
  expect(await host("daily.ts", day("05:10:00.030"))).toEqual(["not here: done"]);
  expect(await host("daily.ts", "2026-12-24T05:15:00.000Z")).toEqual(["not here: done"]);
});

test("trap 53: a host of node-cron that gets SIGTERM while its job runs ends the job, and then itself", async () => {
  const times = { TZ: "UTC", FIRES_AT: "2026-11-25T06:00:00.000Z", WAKES_AT: "2026-11-25T06:00:00.000Z" };
  await using program = programs.start("node-cron-host.ts", { ...times, LASTS_MS: "1500" });
  await program.printed(/^the job runs$/);
  program.kill("SIGTERM");
  program.kill("SIGINT");
  expect(await program.exit).toMatchObject({ code: 0 });
  expect(program.lines).toEqual(["the job runs", "the job ended"]);
});

test("of three hosts of node-cron one runs each fire, and the others say that they were not elected", async () => {
  const times = ["06:00:00.000", "06:00:00.040", "06:00:00.900"];
  const hosts = times.map((time) => ({
    TZ: "UTC",
    WAKES_AT: `2026-11-26T${time}Z`,
    FIRES_AT: "2026-11-26T06:00:00.000Z",
  }));
  const printed: string[] = [];
  for (const env of hosts) {
    await using program = programs.start("node-cron-host.ts", env);
    await program.printed(/^(the job runs|not-elected|coordinator-error)$/);
    printed.push(...program.lines);
  }
  expect(printed).toEqual(["the job runs", "not-elected", "not-elected"]);
});
