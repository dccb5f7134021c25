import type { Chaos, ChaosKind } from "../support/fault-proxy.js";
import type { LockGroup } from "./lock-groups.js";
import type { MischiefCounts } from "./mischief.js";
import type { Slot } from "./slot.js";
import { messagesOf, ofKind, type WorkerMessage } from "./worker-messages.js";

export type Tally = Readonly<Record<string, number>>;

/** What happened, in numbers. */
export interface ChaosReport {
  readonly seconds: number;
  readonly seed: number;
  /** The titles of all locks. */
  readonly groups: readonly string[];
  readonly hostsStarted: number;
  /** By the title of their locks. */
  readonly sectionsDone: Tally;
  /** Lines that sections wrote into their logs, by the title of their locks. */
  readonly lines: Tally;
  /** What became of guarded lines that were sent after the unlock. */
  readonly sentLate: Tally;
  readonly handOffs: { readonly handedOff: number; readonly byTheDead: number; readonly resumed: number };
  readonly resumesRefused: Tally;
  /** Sections that shared the row of another section. */
  readonly joined: number;
  /** Guarded lines that were refused while their section still ran, which had lost its lock. */
  readonly guardRefusals: number;
  /** What the proxy did to requests. */
  readonly requestFaults: Readonly<Record<ChaosKind, number>>;
  readonly mischief: Readonly<MischiefCounts> & { readonly clockStepped: number };
  /** By the rule that allowed it. */
  readonly takeovers: Tally;
  /** Sections that were told that their lock is lost, by reason. */
  readonly lossesTold: Tally;
  /** Calls that ended without the lock, by reason. */
  readonly without: Tally;
  /** Writes of holders that were suspended between check and write: the known limit of a lock without guards. */
  readonly lateWrites: number;
  /** What must not be: by the checker; and programs that crashed, hung, or did not get a lock that nobody held. */
  readonly violations: readonly string[];
}

/** All that is known of a run so far. */
export function reportOn(run: {
  readonly seed: number;
  readonly ms: number;
  readonly slots: readonly Slot[];
  readonly chaos: Chaos;
  readonly mischief: MischiefCounts;
  readonly violations: readonly string[];
}): ChaosReport {
  const messages = messagesOf(run.slots);
  const left = ofKind(messages, "left");
  const groups = [...new Set(run.slots.map(({ group }) => group))];
  const told = groups.map((group) => ({
    group,
    messages: messagesOf(run.slots.filter((slot) => slot.group === group)),
  }));
  return {
    seed: run.seed,
    seconds: Math.round(run.ms / 1_000),
    groups: groups.map(({ title }) => title),
    hostsStarted: run.slots.reduce((sum, { hosts }) => sum + hosts.length, 0),
    sectionsDone: tally(told.flatMap(({ group, messages }) => sectionsDone(group, messages))),
    lines: tally(told.flatMap(({ group, messages }) => ofKind(messages, "acknowledged").map(() => group.title))),
    sentLate: tally(ofKind(messages, "late outcome").map(({ outcome }) => outcome)),
    handOffs: handOffsIn(messages),
    resumesRefused: tally(ofKind(messages, "resume refused").map(({ because }) => because)),
    joined: ofKind(messages, "entered").filter(({ joined }) => joined).length,
    guardRefusals: ofKind(messages, "refused").length,
    requestFaults: { ...run.chaos.injected },
    mischief: { ...run.mischief, clockStepped: ofKind(messages, "stepped").length },
    takeovers: tally(ofKind(messages, "acquired").map(({ takeover }) => takeover)),
    lossesTold: tally(left.map(({ lost }) => lost)),
    without: tally(ofKind(messages, "without").map(({ because }) => because)),
    lateWrites: ofKind(messages, "late write").length,
    violations: run.violations,
  };
}

function sectionsDone({ title, names }: LockGroup, messages: readonly WorkerMessage[]): string[] {
  const done = ofKind(messages, "left").filter(({ lost }) => lost === undefined);
  return done.map((section) => (section.names.length < names.length ? `one alone of ${title}` : title));
}

function handOffsIn(messages: readonly WorkerMessage[]): ChaosReport["handOffs"] {
  const handedOff = ofKind(messages, "handed off");
  const dead = new Set(handedOff.filter(({ dies }) => dies).map(({ by }) => by));
  const resumed = ofKind(messages, "resumed");
  return {
    handedOff: handedOff.length,
    resumed: resumed.length,
    byTheDead: resumed.filter(({ of }) => dead.has(of)).length,
  };
}

/** The report as a Markdown table. */
export function tableOf(report: ChaosReport): string {
  const { mischief, handOffs } = report;
  const rows: readonly (readonly [string, string | number])[] = [
    ["seed", report.seed],
    ["seconds", report.seconds],
    ["hosts started", report.hostsStarted],
    ["locks on the stage", report.groups.join(", ")],
    ["sections done", withParts(report.sectionsDone)],
    ["lines in the logs", withParts(report.lines)],
    ["sections that joined the row of another", report.joined],
    ["locks handed off", handOffs.handedOff],
    ["tokens resumed", `${handOffs.resumed} (${handOffs.byTheDead} of them from a process that was killed)`],
    ["tokens refused", withParts(report.resumesRefused)],
    ["takeovers", withParts(report.takeovers)],
    ["losses told", withParts(report.lossesTold)],
    ["calls that ended without the lock", withParts(report.without)],
    ["requests that met a fault", withParts(report.requestFaults)],
    ["hosts killed (SIGKILL) and started again", mischief.hostKilled],
    ["hosts closed under load (SIGTERM) and started again", mischief.hostClosed],
    ["hosts suspended past a lease (SIGSTOP, SIGCONT)", mischief.hostSuspended],
    ["hosts cut off from the table", mischief.hostCutOff],
    ["steps of a host's wrong clock", mischief.clockStepped],
    ["engine killed (SIGKILL) and started again", mischief.engineKilled],
    ["seconds without an engine", Math.round(mischief.engineDownMs / 1_000)],
    ["guarded lines sent after the unlock", withParts(report.sentLate)],
    ["guarded lines refused within a section", report.guardRefusals],
    ["late writes met, without a guard", report.lateWrites],
    ["violations", report.violations.length],
  ];
  return ["| figure | |", "|---|---|", ...rows.map(([figure, value]) => `| ${figure} | ${value} |`)].join("\n");
}

export function total(parts: Tally): number {
  return Object.values(parts).reduce((sum, part) => sum + part, 0);
}

function withParts(parts: Tally): string {
  const named = Object.entries(parts).map(([part, count]) => `${part} ${count}`);
  return named.length === 0 ? "0" : `${total(parts)} (${named.join(", ")})`;
}

/** How often each occurs; undefined is nothing. */
function tally(values: readonly (string | undefined)[]): Tally {
  const counts: Record<string, number> = {};
  for (const value of values) if (value !== undefined) counts[value] = (counts[value] ?? 0) + 1;
  return counts;
}
