import type { LogEvent } from "./events.js";
import { type Section, sectionsOf } from "./sections.js";

/** One thing that the log has to show, and whether it does. */
export interface Finding {
  readonly passed: boolean;
  readonly text: string;
}

/** What the log is judged by. */
export interface Rules {
  readonly ttlMs: number;
  readonly tickMs: number;
}

/**
 * Judges a log by who worked when. That a mutex thought of a host as its holder counts for nothing; of what it told
 * the hosts only this does: until when they could rely on the lock, should they stop working without a word.
 */
export function audit(log: readonly LogEvent[], rules: Rules): readonly Finding[] {
  const sections = sectionsOf(log);
  return [neverTwoAtOnce(sections), movedOn(log, sections, rules), toldOfItsLoss(log, sections)];
}

function neverTwoAtOnce(sections: readonly Section[]): Finding {
  const hosts = new Set(sections.map(({ host }) => host));
  let last: Section | undefined;
  for (const section of sections) {
    if (last !== undefined && section.began < last.over) {
      const ms = Math.ceil(Math.min(last.over, section.over) - section.began);
      return failed(`${last.host} and ${section.host} were in the section at once, for ${ms} ms`);
    }
    if (last === undefined || section.over > last.over) last = section;
  }
  if (hosts.size < 2) return failed(`only ${hosts.size} of the hosts ever ran the job`);
  return passed(`${sections.length} runs of the job on ${hosts.size} hosts, never two at once`);
}

/**
 * The others count the lease from when they first see its last renewal, which is at the tick after it or before; and
 * they look again at ticks. So they may be two ticks late.
 */
function movedOn(log: readonly LogEvent[], sections: readonly Section[], { ttlMs, tickMs }: Rules): Finding {
  const kill = log.find(({ kind }) => kind === "killed");
  const killed = sections.find(({ ending }) => ending === "killed");
  if (kill === undefined || killed === undefined) return failed("no host was killed while it ran the job");
  const next = sections.find(({ began }) => began > killed.began);
  if (next === undefined) return failed(`nobody took over from ${killed.host} after it was killed`);
  const afterMs = next.began - kill.at;
  const text = `${next.host} went on ${seconds(afterMs)} after ${killed.host} was killed`;
  const limitMs = ttlMs + 2 * tickMs;
  const limit = `${seconds(limitMs)}, a lease and two ticks`;
  return afterMs > limitMs ? failed(`${text}, later than ${limit}`) : passed(`${text}, within ${limit}`);
}

function toldOfItsLoss(log: readonly LogEvent[], sections: readonly Section[]): Finding {
  const frozen = log.find(({ kind }) => kind === "frozen");
  const woken = log.find(({ kind, host }) => kind === "woken" && host === frozen?.host);
  if (frozen === undefined || woken === undefined) return failed("no host was frozen and woken");
  const { host } = frozen;
  const other = sections.find(({ began }) => began > frozen.at && began < woken.at);
  if (other === undefined) return failed(`nobody took over from ${host} while it was frozen`);
  // The first that the host says after it is woken.
  const said = log.find((event) => event.host === host && event.at > woken.at);
  if (said?.kind !== "lost") return failed(`${host} was woken, and was not told that it had lost the lock`);
  const ms = Math.ceil(said.at - woken.at);
  return passed(`${host} was told that it had lost the lock (${said.reason}) ${ms} ms after it was woken`);
}

function passed(text: string): Finding {
  return { passed: true, text };
}

function failed(text: string): Finding {
  return { passed: false, text };
}

function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`;
}
