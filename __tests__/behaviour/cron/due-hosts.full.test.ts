import { randomInt } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "@jest/globals";
import type { TryRunOptions } from "../../../lib/index.js";
import { hang, type RecordedRequest } from "../../support/fault-proxy.js";
import type { Host } from "../../support/host-process.js";
import { startLockHost } from "../../support/lock-host.js";
import { now } from "../../support/monotonic.js";
import { useScene } from "../../support/scene.js";
import type { CronHostConfig, CronMessage } from "./hosts/cron-host.js";

const scene = useScene();
const LEASE_MS = 1_500;
const PERIOD_MS = 10_000;
/** `CRON_SECONDS=120` for the long run. */
const PERIODS = Math.ceil(Number(process.env.CRON_SECONDS ?? 30) / 10);
const ONCE: TryRunOptions = { once: 41, untilSuccess: true };

/** A host that asks for the same again and again. */
function start({ ask = ONCE, ...more }: Partial<CronHostConfig> & Pick<CronHostConfig, "jobMs">): Host<CronMessage> {
  const config: CronHostConfig = { tableName: scene.tableName, name: scene.name, ttlMs: LEASE_MS, ask, ...more };
  const program = new URL("./hosts/cron-host.js", import.meta.url);
  return startLockHost<CronMessage>(program, { endpoint: scene.proxy.endpoint, config });
}

async function tickOfRow() {
  const { tick, due, attempt } = (await scene.row()) ?? {};
  return { tick, due, attempt };
}

const because = (wanted: CronMessage["because"]) => (message: CronMessage) => message.because === wanted;

/** Whether it takes the mark away that the tick is due, and does nothing else. */
function isRecord({ operation, body }: RecordedRequest): boolean {
  const names = body.ExpressionAttributeNames ?? {};
  const removed = /^REMOVE (#?\w+)$/.exec(String(body.UpdateExpression))?.[1] ?? "";
  return operation === "UpdateItem" && (names[removed] ?? removed) === "due";
}

test.each([
  ["began", "in the middle of it"],
  ["ended", "before the record"],
])(
  "a host is killed when its run has %s, %s: the next runs the tick as attempt 2, and its record outlives it",
  async (moment) => {
    // No record gets to the table before the kill.
    const lost = scene.proxy.on(isRecord, hang());
    await using first = start({ jobMs: moment === "began" ? 2 ** 30 : 1 });
    const { attempt } = await first.message(({ kind }) => kind === moment);
    if (moment === "ended") await scene.proxy.until((requests) => requests.some(isRecord));
    first.kill("SIGKILL");
    await first.exit;
    lost.remove();
    expect(attempt).toBe(1);
    expect(await tickOfRow()).toEqual({ tick: 41, due: 41, attempt: 1 });

    await using second = start({ jobMs: 300 });
    expect(await second.message(because("ran"))).toMatchObject({ tick: 41, attempt: 2 });
    second.kill("SIGKILL");
    await second.exit;
    const recorded = { tick: 41, due: undefined, attempt: 2 };
    expect(await tickOfRow()).toEqual(recorded);

    await using third = start({ jobMs: 300 });
    expect(await third.message(because("done"))).toMatchObject({ remembered: 41 });
    expect(third.messages.filter(({ kind }) => kind === "began")).toEqual([]);
    expect(await tickOfRow()).toEqual(recorded);
  },
);

test(
  `3 hosts under kills for ${PERIODS} periods: one recorded success each at most, and one where the last kill left time`,
  async () => {
    // Epoch ms at 0 of the stopwatch that all processes share.
    const epoch = Date.now() - now();
    const first = Math.ceil(Date.now() / PERIOD_MS) * PERIOD_MS;
    const over = AbortSignal.timeout(first + PERIODS * PERIOD_MS - Date.now());
    const kills: number[] = [];
    const hosts: Host<CronMessage>[] = [];
    const serve = async (): Promise<void> => {
      while (!over.aborted) {
        await using host = start({ ask: { everyMs: PERIOD_MS, untilSuccess: true }, jobMs: 300, throwsEvery: 3 });
        hosts.push(host);
        const stop = (): void => void host.kill("SIGKILL");
        over.addEventListener("abort", stop);
        if (over.aborted) stop();
        // Nothing comes any more once the time is over.
        const moment = await host.next(isDoomed).catch(() => undefined);
        if (moment !== undefined) await sleep(randomInt(0, moment.kind === "began" ? 300 : 9));
        if (!over.aborted && host.kill("SIGKILL")) kills.push(epoch + now());
        const { code } = await host.exit;
        over.removeEventListener("abort", stop);
        if (code !== null) throw new Error(`a host failed: ${host.stderr}`);
      }
    };
    await Promise.all(Array.from({ length: 3 }, serve));

    const asks = hosts.flatMap((host) => asksOf(host, epoch));
    const records = recordsOf(epoch);
    const recorded = records.map(({ tick }) => tick);
    expect(recorded).toEqual([...new Set(recorded)]);
    // What a call was told of, the table had applied.
    for (const { because, tick } of asks) if (because === "ran") expect(recorded).toContain(tick);
    checkRuns(asks, records);

    const widest = Math.max(...asks.map(({ doubtMs }) => doubtMs));
    const owed: number[] = [];
    for (let begin = first; begin < first + PERIODS * PERIOD_MS; begin += PERIOD_MS) {
      const end = begin + PERIOD_MS - widest;
      const lastKill = Math.max(0, ...kills.filter((at) => at < begin + PERIOD_MS));
      const quiet = Math.max(begin + widest, lastKill + LEASE_MS + 2 * widest);
      const later = asks.filter(({ askedAt, answeredAt }) => askedAt >= quiet && answeredAt <= end);
      for (const ask of later)
        if (ask.because === "held") expect(asks.some((other) => isInTheWay(other, ask))).toBe(true);
      if (later.some(({ because }) => because === "ran" || because === "done")) owed.push(begin);
    }
    expect(owed.filter((tick) => !recorded.includes(tick))).toEqual([]);
    expect(owed.length).toBeGreaterThan(0);
    expect(kills.length).toBeGreaterThan(0);
    if (process.env.CRON_SECONDS !== undefined) {
      const runs = asks.filter(({ beganAt }) => beganAt !== undefined).length;
      console.log(
        `${PERIODS} periods: ${kills.length} kills, ${asks.length} asks, ${runs} runs, ` +
          `${recorded.length} recorded successes, ${owed.length} periods with a lease and a poll left`,
      );
    }
  },
  (PERIODS + 6) * PERIOD_MS,
);

/** By lot, and mostly in a run. In two of three periods the last part is left in peace. */
function isDoomed({ kind }: CronMessage): boolean {
  const [index, intoMs] = [Math.floor(Date.now() / PERIOD_MS), Date.now() % PERIOD_MS];
  const share = { asking: 0.05, began: 0.6, ended: 0.5, answered: 0 }[kind];
  return (index % 3 === 2 || intoMs < 4_000) && Math.random() < share;
}

/** One call of a host, in epoch ms; one that was not answered has no end. */
interface Ask {
  readonly host: Host<CronMessage>;
  readonly askedAt: number;
  readonly answeredAt: number;
  readonly beganAt: number | undefined;
  readonly tick: number | undefined;
  readonly attempt: number | undefined;
  readonly because: CronMessage["because"];
  readonly doubtMs: number;
}

function asksOf(host: Host<CronMessage>, epoch: number): readonly Ask[] {
  return host.messages
    .filter(({ kind }) => kind === "asking")
    .map(({ ask, at }) => {
      const its = host.messages.filter((message) => message.ask === ask);
      const [run, answer] = [its.find(({ kind }) => kind === "began"), its.find(({ kind }) => kind === "answered")];
      return {
        ...{ host, askedAt: epoch + at, answeredAt: epoch + (answer?.at ?? Number.POSITIVE_INFINITY) },
        ...{ beganAt: run && epoch + run.at, tick: run?.tick, attempt: run?.attempt, because: answer?.because },
        doubtMs: Math.max(0, ...its.map(({ doubtMs = 0 }) => doubtMs)),
      };
    });
}

/** Whether it may have held the lock while the other asked: it did not find it held itself. */
function isInTheWay(other: Ask, ask: Ask): boolean {
  if (other.host === ask.host || other.because === "held" || other.because === "done") return false;
  return other.askedAt <= ask.answeredAt && other.answeredAt >= ask.askedAt;
}

/** Each run of a tick has a later number than those before it, and none begins after the record. */
function checkRuns(asks: readonly Ask[], records: readonly { readonly tick: number; readonly at: number }[]): void {
  const runs = asks.filter(({ beganAt }) => beganAt !== undefined);
  runs.sort((one, other) => Number(one.beganAt) - Number(other.beganAt));
  const last = new Map<number, number>();
  for (const { tick = 0, attempt = 0, beganAt = 0 } of runs) {
    expect(attempt).toBeGreaterThan(last.get(tick) ?? 0);
    last.set(tick, attempt);
    const record = records.find((one) => one.tick === tick);
    if (record !== undefined) expect(beganAt).toBeLessThan(record.at);
  }
}

/** The successes that the table has recorded, each once, by the uuids of their takes. */
function recordsOf(epoch: number): readonly { readonly tick: number; readonly at: number }[] {
  const ticks = new Map<unknown, number>();
  const records = new Map<unknown, { readonly tick: number; readonly at: number }>();
  for (const request of scene.proxy.requests) {
    if (request.operation !== "UpdateItem" || request.table?.status !== 200) continue;
    const { ":uuid": taken, ":tick": tick, ":if_uuid": by } = request.body.ExpressionAttributeValues ?? {};
    if (taken !== undefined && tick !== undefined) ticks.set(taken.S, Number(tick.N));
    if (!isRecord(request) || records.has(by?.S)) continue;
    records.set(by?.S, { tick: ticks.get(by?.S) ?? Number.NaN, at: epoch + request.arrivedAt });
  }
  return [...records.values()];
}
