import type { Chaos } from "../../support/fault-proxy.js";
import type { MischiefCounts } from "./mischief.js";
import type { Slot } from "./slot.js";
import { messagesOf, ofKind, type WorkerMessage } from "./worker-messages.js";

/** How often each part of a figure occurred. */
type Tally = Readonly<Record<string, number>>;

export interface ChaosReport {
  /** What happened, by the titles that the figures are printed with. */
  readonly figures: Readonly<Record<string, string | number | Tally>>;
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
  const { seed, ms, slots, chaos, mischief, violations } = run;
  const messages = messagesOf(slots);
  const count = (kind: WorkerMessage["kind"]): number => ofKind(messages, kind).length;
  const titles = slots.flatMap(({ group, hosts }) => hosts.map(({ messages }) => ({ ...group, messages })));
  const handedOff = ofKind(messages, "handed off");
  const dead = new Set(handedOff.filter(({ dies }) => dies).map(({ section }) => section));
  const resumed = ofKind(messages, "tried token").filter(({ section }) => section !== undefined);
  const done = titles.flatMap(({ title, names, messages }) =>
    ofKind(messages, "left")
      .filter(({ lost }) => lost === undefined)
      .map((section) => (section.names.length < names.length ? `one alone of ${title}` : title)),
  );
  const figures: ChaosReport["figures"] = {
    seed,
    seconds: Math.round(ms / 1_000),
    "hosts started": slots.reduce((sum, { hosts }) => sum + hosts.length, 0),
    "locks on the stage": [...new Set(slots.map(({ group }) => group.title))].join(", "),
    "sections done": tally(done),
    "lines in the logs": tally(
      titles.flatMap(({ title, messages }) => ofKind(messages, "acknowledged").map(() => title)),
    ),
    "sections that joined the row of another": ofKind(messages, "entered").filter(({ joined }) => joined).length,
    "locks handed off": handedOff.length,
    "tokens resumed": tally(resumed.map(({ of }) => (dead.has(of) ? "from a process that was killed" : "from others"))),
    "tokens refused": tally(ofKind(messages, "resume refused").map(({ because }) => because)),
    takeovers: tally(ofKind(messages, "acquired").map(({ takeover }) => takeover)),
    "losses told": tally(ofKind(messages, "left").map(({ lost }) => lost)),
    "calls that ended without the lock": tally(ofKind(messages, "without").map(({ because }) => because)),
    "requests that met a fault": { ...chaos.injected },
    "hosts killed (SIGKILL) and started again": mischief.hostKilled,
    "hosts closed under load (SIGTERM) and started again": mischief.hostClosed,
    "hosts suspended past a lease (SIGSTOP, SIGCONT)": mischief.hostSuspended,
    "hosts cut off from the table": mischief.hostCutOff,
    "times that all pooled connections of a host died": mischief.connectionsKilled,
    "steps of a host's wrong clock": count("stepped"),
    "engine killed (SIGKILL) and started again": mischief.engineKilled,
    "seconds without an engine": Math.round(mischief.engineDownMs / 1_000),
    "guarded lines sent after the unlock": tally(ofKind(messages, "late outcome").map(({ outcome }) => outcome)),
    "guarded lines refused within a section": count("refused"),
    "late writes met, without a guard": count("late write"),
    violations: violations.length,
  };
  return { figures, violations };
}

/** A figure, or one of its parts. */
export function figureOf({ figures }: ChaosReport, title: string, part?: string): number {
  const figure = figures[title];
  if (figure === undefined) throw new Error(`There is no figure “${title}”`);
  if (typeof figure !== "object") return Number(figure);
  return part === undefined ? Object.values(figure).reduce((sum, each) => sum + each, 0) : (figure[part] ?? 0);
}

/** The report as a Markdown table. */
export function tableOf(report: ChaosReport): string {
  const rows = Object.entries(report.figures).map(([title, figure]) => {
    const parts = typeof figure === "object" ? Object.entries(figure).map(([part, count]) => `${part} ${count}`) : [];
    const named = parts.length === 0 ? "" : ` (${parts.join(", ")})`;
    return `| ${title} | ${typeof figure === "string" ? figure : figureOf(report, title)}${named} |`;
  });
  return ["| figure | |", "|---|---|", ...rows].join("\n");
}

/** How often each occurs; undefined is nothing. */
function tally(values: readonly (string | undefined)[]): Tally {
  const counts: Record<string, number> = {};
  for (const value of values) if (value !== undefined) counts[value] = (counts[value] ?? 0) + 1;
  return counts;
}
