import { describe, expect, it } from "@jest/globals";
import { audit } from "../../../examples/ha-cron/audit.js";
import type { HostEvent, LogEvent } from "../../../examples/ha-cron/events.js";

const RULES = { ttlMs: 2_500, tickMs: 1_000 };

/** A log as a good run leaves it: a dies in its section, b sleeps through its lease, c goes on, b is told. */
const GOOD: readonly LogEvent[] = [
  ...section("a", 0, { kind: "killed" }),
  ...section("b", 4_000, { kind: "finished" }),
  ...section("b", 7_000, { kind: "frozen" }),
  ...section("c", 10_500, { kind: "finished" }),
  line(11_000, "b", { kind: "woken" }),
  line(11_010, "b", { kind: "lost", reason: "expired" }),
].sort(inOrder);

function line(at: number, host: string, event: HostEvent): LogEvent {
  return { at, host, ...event };
}

/** A section of 1.2 s with a line for each 0.1 s, and a last one; its lease is renewed as it works. */
function section(host: string, from: number, ending: HostEvent): LogEvent[] {
  const work = Array.from({ length: 11 }, (_, step) =>
    line(from + (step + 1) * 100, host, { kind: "worked", remainingMs: 2_200 }),
  );
  return [
    line(from, host, { kind: "began", tick: from, remainingMs: 2_200 }),
    ...work,
    line(from + 1_200, host, ending),
  ];
}

function inOrder(one: LogEvent, other: LogEvent): number {
  return one.at - other.at;
}

/** The good log with some lines taken out and others put in. */
function but(out: (event: LogEvent) => boolean, ...more: readonly LogEvent[]): readonly LogEvent[] {
  return [...GOOD.filter((event) => !out(event)), ...more].sort(inOrder);
}

function failures(log: readonly LogEvent[]): readonly string[] {
  return audit(log, RULES).flatMap(({ passed, text }) => (passed ? [] : [text]));
}

describe("the audit of the demo", () => {
  it("passes a good log, and says what it saw", () => {
    expect(audit(GOOD, RULES)).toEqual([
      { passed: true, text: "4 runs of the job on 3 hosts, never two at once" },
      {
        passed: true,
        text: "b went on 2.8 s after a was killed, within 4.5 s, a lease and two ticks",
      },
      { passed: true, text: "b was told that it had lost the lock (expired) 10 ms after it was woken" },
    ]);
  });

  it("catches a host that goes on working after it was woken", () => {
    const log = but(
      ({ kind }) => kind === "lost",
      line(11_050, "b", { kind: "worked", remainingMs: 0 }),
      line(11_150, "b", { kind: "lost", reason: "expired" }),
    );
    expect(failures(log)).toEqual([
      "b and c were in the section at once, for 550 ms",
      "b was woken, and was not told that it had lost the lock",
    ]);
  });

  it("catches a job that moved on too late after the kill, or never", () => {
    const late = GOOD.map((event) => (event.host === "a" ? { ...event, at: event.at - 2_000 } : event));
    expect(failures(late)).toEqual(["b went on 4.8 s after a was killed, later than 4.5 s, a lease and two ticks"]);
    expect(failures(GOOD.filter(({ host }) => host === "a"))).toContain("nobody took over from a after it was killed");
  });

  it("catches a woken host that was never told, or finished before it was", () => {
    const untold = but(({ kind }) => kind === "lost");
    expect(failures(untold)).toEqual(["b was woken, and was not told that it had lost the lock"]);
    const finished = but(({ kind }) => kind === "lost", line(11_010, "b", { kind: "finished" }));
    expect(failures(finished)).toContain("b was woken, and was not told that it had lost the lock");
  });

  it("does not pass a run in which nothing happened", () => {
    expect(failures([])).toEqual([
      "only 0 of the hosts ever ran the job",
      "no host was killed while it ran the job",
      "no host was frozen and woken",
    ]);
  });
});
