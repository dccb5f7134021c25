import type { LogEvent } from "./events.js";
import type { HostProcess } from "./host-process.js";
import type { LogFollower } from "./log-follower.js";
import { JOB_MS, TTL_MS } from "./settings.js";

/** What happens to the hosts, in order. `step` is told what is waited for. */
export async function play(
  hosts: readonly HostProcess[],
  log: LogFollower,
  step: (awaited: string) => void,
): Promise<void> {
  const named = (name: string): HostProcess => hosts.find((host) => host.name === name) as HostProcess;

  step("a first run of the job");
  await log.next(({ kind }) => kind === "finished");

  step("a host that has renewed its lock, to kill it");
  const victim = named(await atWork(log, TTL_MS / 2 + 150));
  victim.kill();

  step(`another host to take over from ${victim.name}`);
  await log.next(({ kind }) => kind === "finished");

  step("a host that runs the job, to freeze it");
  const sleeper = named(await atWork(log, 300));
  sleeper.freeze();

  step(`the last host to take over from ${sleeper.name}`);
  await atWork(log, 800, sleeper.name);
  sleeper.wake();

  step(`a word from ${sleeper.name}, which was woken`);
  await log.next(({ kind, host }) => host === sleeper.name && kind !== "woken");

  step("a last run of the job");
  await log.next(({ kind }) => kind === "began");
  await log.next(({ kind }) => kind === "finished");

  step("the hosts to stop");
  await Promise.all(hosts.map((host) => host.stop()));
}

/** The name of a host, once it has worked in its section for `ms`, with some of it still to come. */
async function atWork(log: LogFollower, ms: number, except?: string): Promise<string> {
  const began = new Map<string, number>();
  const { host } = await log.next((event: LogEvent) => {
    if (event.kind === "began") began.set(event.host, event.at);
    if (event.kind !== "worked" || event.host === except) return false;
    const workedMs = event.at - (began.get(event.host) ?? event.at);
    return workedMs >= ms && workedMs <= JOB_MS - 300;
  });
  return host;
}
