import { expect, test } from "@jest/globals";
import { type RecordedRequest, startFaultProxy } from "../support/fault-proxy.js";
import { now } from "../support/monotonic.js";
import { createTestTable, testEndpoint } from "../support/table.js";
import { career, type Kill, startCronHost } from "./cron-hosts.js";

const HOUR = 3_600_000;
/** The table's clock goes so fast, and with it everything that the library does. */
const SPEED = 4;
const EVERY_MS = 4_000;
const RUNS = 8;
const BEGIN = Date.UTC(2030, 0, 1);

interface Grant {
  readonly tick: number;
  /** On the table's clock, when the request arrived there. */
  readonly arrived: number;
}

test("3 hosts with clocks an hour apart, some of them killed: one run in every period in which somebody asked", async () => {
  const tableName = await createTestTable();
  await using proxy = await startFaultProxy({ target: testEndpoint() });
  const startedAt = now();
  const tableTime = (at: number): number => BEGIN + (at - startedAt) * SPEED;
  proxy.rewriteDate(() => new Date(tableTime(now())).toUTCString());
  const arrivals = new Map<RecordedRequest, number>();
  const noteArrival = (request: RecordedRequest): boolean => {
    arrivals.set(request, tableTime(now()));
    return false;
  };
  proxy.on(noteArrival, { kind: "none", apply: async () => undefined });

  const over = new AbortController();
  const kills: Kill["moment"][] = [];
  const plans: Kill[][] = [
    [{ moment: "asking", count: 12 }],
    [{ moment: "began", count: 2 }],
    [{ moment: "ended", count: 2 }],
  ];
  const playing = Promise.all(
    [-HOUR, 0, HOUR].map((aheadMs, index) => {
      const start = () =>
        startCronHost(proxy.endpoint, {
          ...{ tableName, ttlMs: 4_000, aheadMs, speed: SPEED, jobMs: 15, pauseMs: 60 },
          ...{ asks: [{ everyMs: EVERY_MS }], endless: true },
        });
      return career(start, plans[index] ?? [], { over: over.signal, kills });
    }),
  );
  const enough = proxy.until((requests) => kills.length === 3 && requests.filter(isGrant).length >= RUNS);
  await Promise.race([enough, playing]);
  over.abort();
  const careers = await playing;

  const grants: Grant[] = proxy.select(isGrant).map((request) => ({
    tick: Number(request.body.ExpressionAttributeValues?.[":tick"]?.N),
    arrived: arrivals.get(request) ?? Number.NaN,
  }));
  const granted = grants.map(({ tick }) => tick);
  expect(granted.filter((tick, index) => granted.indexOf(tick) < index)).toEqual([]);
  // No period ran before it had begun, and every one is a period of the table's clock.
  expect(grants.filter(({ tick, arrived }) => !(tick <= arrived) || tick % EVERY_MS !== 0)).toEqual([]);

  const asks = careers.flatMap((messages) =>
    messages.flatMap((answer) => {
      if (answer.kind !== "answered") return [];
      const asked = messages.findLast(({ kind, ask, at }) => kind === "asking" && ask === answer.ask && at < answer.at);
      const { because } = answer;
      // A clock that is in doubt about more than a period promises nothing; a machine that stalls makes it so.
      const isSure = [asked, answer].every((message) => (message?.doubtMs ?? EVERY_MS) < EVERY_MS / 2);
      return [{ from: tableTime(asked?.at ?? Number.NaN), to: tableTime(answer.at), because, isSure }];
    }),
  );
  const missed = asks.filter(({ from, to, because, isSure }) => {
    const period = Math.floor(from / EVERY_MS) * EVERY_MS;
    return isSure && to < period + EVERY_MS && (because === "ran" || because === "done") && !granted.includes(period);
  });
  expect(missed).toEqual([]);
  expect(new Set(kills)).toEqual(new Set(["asking", "began", "ended"]));
  expect(granted.length).toBeGreaterThanOrEqual(RUNS);
  // Enough of them count for the rule above.
  expect(asks.filter(({ because }) => because === "done").length).toBeGreaterThan(0);
  expect(asks.filter(({ isSure }) => isSure).length).toBeGreaterThan(RUNS / 2);
}, 120_000);

/** A take for a tick, which the table granted. */
function isGrant({ body, table }: RecordedRequest): boolean {
  return body.ExpressionAttributeValues?.[":tick"] !== undefined && table?.status === 200;
}
