import { setTimeout as sleep } from "node:timers/promises";
import { HostProcess } from "./host-process.js";
import type { LogFollower } from "./log-follower.js";
import { play } from "./scenario.js";

/**
 * Starts the hosts, plays the scenario on them, and ends them all, whatever happens.
 *
 * @param file where the hosts write their log.
 * @throws if a host ends by itself, or if it takes longer than `atMostMs`; the message says what was waited for.
 */
export async function perform(
  names: readonly string[],
  { file, log, atMostMs }: { readonly file: number; readonly log: LogFollower; readonly atMostMs: number },
): Promise<void> {
  const hosts = names.map((name) => new HostProcess(name, file));
  let awaited = "";
  const tooLong = sleep(atMostMs, undefined, { ref: false }).then(() => {
    throw new Error(`after ${atMostMs / 1_000} s the demo still waited for ${awaited}`);
  });
  tooLong.catch(() => undefined);
  try {
    const played = play(hosts, log, (next) => {
      awaited = next;
    });
    await Promise.race([played, tooLong, ...hosts.map((host) => host.failure)]);
  } finally {
    await Promise.all(hosts.map((host) => host[Symbol.asyncDispose]()));
  }
}
