import { expect, test } from "@jest/globals";
import type { TryRunOptions } from "../../lib/index.js";
import { hang, type RecordedRequest } from "../support/fault-proxy.js";
import type { Host } from "../support/host-process.js";
import { startLockHost } from "../support/lock-host.js";
import { useScene } from "../support/scene.js";
import type { CronHostConfig, CronMessage } from "./hosts/cron-host.js";

const scene = useScene();
const ASK: TryRunOptions = { once: 41, untilSuccess: true };

/** A host that asks for the same again and again. */
function start({ jobMs }: Pick<CronHostConfig, "jobMs">): Host<CronMessage> {
  const config: CronHostConfig = { tableName: scene.tableName, name: scene.name, ttlMs: 1_500, jobMs, ask: ASK };
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
