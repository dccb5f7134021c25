import { randomInt } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { Host } from "../support/host-process.js";
import { startLockHost } from "../support/lock-host.js";
import type { CronHostConfig, CronMessage } from "./hosts/cron-host.js";

const PROGRAM = new URL("./hosts/cron-host.js", import.meta.url);

/** Starts a host of the schedule. */
export function startCronHost(endpoint: string, config: CronHostConfig): Host<CronMessage> {
  return startLockHost<CronMessage>(PROGRAM, { endpoint, config });
}

/** When a host is killed: as soon as it has told of the so many-th such moment, and up to a few ms later. */
export interface Kill {
  readonly moment: "asking" | "began" | "ended";
  readonly count: number;
}

/**
 * A host that is killed and started again, until there is nothing left to kill it for and it ends by itself.
 *
 * @param startAt starts it at one of its asks: that at which its predecessor was killed is asked for again.
 * @param kills is told of each kill.
 * @param over ends it, and is no kill.
 * @returns what the host and its successors have told.
 */
export async function career(
  startAt: (ask: number) => Host<CronMessage>,
  plan: readonly Kill[],
  { kills, over }: { readonly kills: Kill["moment"][]; readonly over?: AbortSignal },
): Promise<readonly CronMessage[]> {
  const messages: CronMessage[] = [];
  let first = 0;
  for (const kill of [...plan, undefined]) {
    await using host = startAt(first);
    const stop = (): void => void host.kill("SIGKILL");
    over?.addEventListener("abort", stop);
    if (over?.aborted) stop();
    if (kill !== undefined && (await came(host, kill))) {
      await sleep(randomInt(0, 8));
      if (!over?.aborted && host.kill("SIGKILL")) kills.push(kill.moment);
    }
    const { code } = await host.exit;
    over?.removeEventListener("abort", stop);
    messages.push(...host.messages.map((message) => ({ ...message, ask: message.ask + first })));
    if (code === 0 || over?.aborted) return messages;
    if (code !== null) throw new Error(`a host failed: ${host.stderr}`);
    first = messages.at(-1)?.ask ?? first;
  }
  return messages;
}

/** Whether the moment came before the host ended. */
async function came(host: Host<CronMessage>, { moment, count }: Kill): Promise<boolean> {
  let left = count;
  const isIt = ({ kind }: CronMessage): boolean => kind === moment && --left <= 0;
  try {
    await host.next(isIt);
    return true;
  } catch {
    return false;
  }
}
