import type { Chaos } from "../../support/fault-proxy.js";
import type { MischiefCounts } from "./mischief.js";
import type { Slot } from "./slot.js";
import { messagesOf, ofKind, type WorkerMessage } from "./worker-messages.js";

/** How often each part of a figure occurred. */
type Tally = Readonly<Record<string, number>>;

export interface ChaosReport {
  /** What happened, by the titles that the figures are printed with. */
  readonly figures: Readonly<Record<string, number | Tally>>;
  /** What must not be: by the checker; and programs that crashed, hung, or did not get a lock that nobody held. */
  readonly violations: readonly string[];
}

/** All that is known of a run so far. */
export function reportOn(run: {
  readonly ms: number;
  readonly slots: readonly Slot[];
  readonly chaos: Chaos;
  readonly mischief: MischiefCounts;
  readonly violations: readonly string[];
}): ChaosReport {
  const { ms, slots, chaos, mischief, violations } = run;
  const messages = messagesOf(slots);
  const count = (kind: WorkerMessage["kind"]): number => ofKind(messages, kind).length;
  const groups = slots.flatMap(({ group, hosts }) => hosts.map(({ messages }) => ({ ...group, messages })));
  const handedOff = ofKind(messages, "handed off");
  const dead = new Set(handedOff.filter(({ dies }) => dies).map(({ section }) => section));
  const resumed = ofKind(messages, "tried token").filter(({ section }) => section !== undefined);
  const done = groups.flatMap(({ tag, names, messages }) =>
    ofKind(messages, "left")
      .filter(({ lost }) => lost === undefined)
      .map((section) => (section.names.length < names.length ? `one of ${tag}` : tag)),
  );
  const figures: ChaosReport["figures"] = {
    seconds: Math.round(ms / 1_000),
    "sections done": tally(done),
    "lines written": count("acknowledged"),
    "sections that joined a row": ofKind(messages, "entered").filter(({ joined }) => joined).length,
    "locks handed off": handedOff.length,
    "tokens resumed": tally(resumed.map(({ of }) => (dead.has(of) ? "of killed processes" : "of others"))),
    "tokens refused": count("resume refused"),
    takeovers: tally(ofKind(messages, "acquired").map(({ takeover }) => takeover)),
    "losses told": ofKind(messages, "left").filter(({ lost }) => lost !== undefined).length,
    "calls that ended without the lock": count("without"),
    "requests that met a fault": Object.values(chaos.injected).reduce((sum, each) => sum + each, 0),
    "hosts killed": mischief.hostKilled,
    "hosts closed": mischief.hostClosed,
    "hosts suspended": mischief.hostSuspended,
    "hosts cut off": mischief.hostCutOff,
    "hosts whose connections died": mischief.connectionsKilled,
    "steps of wrong clocks": count("stepped"),
    "engine killed": mischief.engineKilled,
    "seconds without an engine": Math.round(mischief.engineDownMs / 1_000),
    "guarded lines sent after the unlock": tally(ofKind(messages, "late outcome").map(({ outcome }) => outcome)),
    "guarded lines refused within a section": count("refused"),
    "late writes without a guard": count("late write"),
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

/** The figures as lines of text. */
export function textOf(report: ChaosReport): string {
  const lines = Object.entries(report.figures).map(([title, figure]) => {
    const parts = typeof figure === "object" ? Object.entries(figure).map(([part, count]) => `${part} ${count}`) : [];
    const named = parts.length === 0 ? "" : ` (${parts.join(", ")})`;
    return `${String(figureOf(report, title)).padStart(7)}  ${title}${named}`;
  });
  return lines.join("\n");
}

/** How often each occurs; undefined is nothing. */
function tally(values: readonly (string | undefined)[]): Tally {
  const counts: Record<string, number> = {};
  for (const value of values) if (value !== undefined) counts[value] = (counts[value] ?? 0) + 1;
  return counts;
}
