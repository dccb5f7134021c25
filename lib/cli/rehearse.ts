import { randomUUID } from "node:crypto";
import { createRequire } from "node:module";
import { type Mutex, systemClock, type TableReport } from "../index.js";
import { EXIT, exitCodeOf, Failure } from "./failure.js";
import { onTable, type TableArguments } from "./open-table.js";
import { showDuration } from "./options.js";
import { complain, print, printable } from "./output.js";
import { Cast } from "./rehearsal-cast.js";
import { meter, playHost, type Used } from "./rehearsal-host.js";
import { problemLines } from "./table.js";

export interface RehearseOptions extends TableArguments {
  readonly ttl?: number;
  readonly dryRun?: boolean;
  /** The name of the lock, where this process is one that a rehearsal has started. */
  readonly host?: string;
}

/** How often a lock that nobody else wants is taken, and how often the hosts hand theirs over. */
const [LOCKS, TURNS] = [20, 12];
/** By what a takeover may be later than the lease of the process that is gone: a poll, the error of the table's clock, the network. */
const LATE_MS = 5_000;

/** One thing that was promised, or measured. */
type Finding = readonly [what: string, verdict: "passed" | "FAILED" | "not seen" | "", text: string];

const judged = (what: string, passed: boolean, text: string): Finding => [what, passed ? "passed" : "FAILED", text];

/** Shows on a table what locks do when a process dies. @returns 0 if all was as promised, 1 if not, 128 + n if signal n ended it. */
export async function rehearse(options: RehearseOptions): Promise<number> {
  const { ttl: ttlMs = 5_000, host, dryRun } = options;
  return await onTable(options, async (opened) => {
    const { locks } = opened;
    const mutex = locks.mutex(host ?? `dynamutex#rehearsal#${randomUUID()}`, { ttlMs });
    if (host !== undefined) {
      await playHost(mutex, () => locks.close());
      return EXIT.done;
    }
    process.stdout.on("error", () => undefined); // it goes on where nobody reads any more, and removes its row
    print(planOf(locks.tableName, `${options.keyPrefix ?? ""}${mutex.name}`, ttlMs));
    if (dryRun) return EXIT.done;
    const report = await locks.check();
    for (const line of problemLines(report, opened)) print(`${line}\n`);
    const findings = [permissions(report)];
    const interruptedBy = report.usable ? await play(mutex, ttlMs, findings) : undefined;
    if (interruptedBy !== undefined) return exitCodeOf(interruptedBy);
    print(markdown(report, ttlMs, findings));
    return findings.some(([, verdict]) => verdict === "FAILED") ? EXIT.no : EXIT.done;
  });
}

function planOf(tableName: string, row: string, ttlMs: number): string {
  const [writes, reads] = [160, 60 + Math.ceil(ttlMs / 125)];
  const dollars = (writes * 0.625 + reads * 0.125) / 1e6;
  return `A rehearsal on table ${printable(tableName)}. It takes and releases one lock, whose name no program uses:

  ${printable(row)}

Its row is removed at the end, and no other is written. Three processes contend for it. One is killed and one is frozen while they
hold the lock, so it takes two leases of ${showDuration(ttlMs)}, and some seconds more. It needs at most about ${writes + reads} requests: ${writes} write and
${reads} read units, which are ${dollars.toFixed(5)} dollars at 0.625 and 0.125 for a million (us-east-1; docs/guides/costs.md).\n\n`;
}

/** Plays it, and removes the row. @returns the signal that has interrupted it. */
async function play(mutex: Mutex, ttlMs: number, findings: Finding[]): Promise<NodeJS.Signals | undefined> {
  const stop = new AbortController();
  let interruptedBy: NodeJS.Signals | undefined;
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    process.once(signal, () => {
      interruptedBy = signal;
      stop.abort(new Failure(`interrupted by ${signal}`));
    });
  }
  const limitMs = 60_000 + 10 * ttlMs;
  const late = new Failure(`it was not over after ${showDuration(limitMs)}`);
  const cancel = systemClock().alarm(limitMs, () => stop.abort(late));
  try {
    await perform(mutex, ttlMs, stop.signal, findings);
  } catch (error) {
    const { message } = (stop.signal.aborted ? stop.signal.reason : error) as Error;
    findings.push(judged("the rehearsal", false, message));
  }
  cancel();
  const left = await remove(mutex).catch((error: Error) => error);
  const row =
    left === undefined ? "is removed" : `is left: ${left.message}. The table's TTL, if it is on, removes it in a week`;
  findings.push(judged("its row", left === undefined, row));
  if (interruptedBy !== undefined) complain(`interrupted; the row of the rehearsal ${row}`);
  return interruptedBy;
}

/** Takes the lock alone, has the hosts take turns, kills one of them, and freezes one past its lease. */
async function perform(mutex: Mutex, ttlMs: number, signal: AbortSignal, findings: Finding[]): Promise<void> {
  const clock = systemClock();
  const [own, locks] = [meter(), [] as number[]];
  await (await mutex.lock({ signal })).unlock(); // connects, and learns the table's time
  while (locks.length < LOCKS) {
    const askedAt = clock.atLeast();
    await using _ = await mutex.lock({ signal });
    locks.push(clock.atLeast() - askedAt);
  }
  await using cast = new Cast(["a", "b", "c"], mutex.name, signal);
  const takeover = (what: string, goneAt: number, [{ name }, at]: Awaited<ReturnType<Cast["begun"]>>): Finding => {
    const text = `${name} had the lock ${((at - goneAt) / 1_000).toFixed(1)} s later`;
    return judged(what, at - goneAt <= ttlMs + LATE_MS, `${text}; a lease is ${showDuration(ttlMs)}`);
  };
  try {
    for (let turn = 0; turn <= TURNS; turn++) cast.answer((await cast.begun())[0]);
    const [victim] = await cast.begun(); // it waits for an answer, in its section
    const killedAt = cast.act(victim, "SIGKILL");
    const heir = await cast.begun();
    findings.push(takeover("after the kill", killedAt, heir));
    cast.answer(heir[0]);
    const [sleeper] = await cast.begun();
    if (process.platform === "win32") {
      findings.push(["after the freeze", "not seen", `processes cannot be frozen on ${process.platform}`]);
      return;
    }
    const frozenAt = cast.act(sleeper, "SIGSTOP");
    cast.answer(sleeper);
    const last = await cast.begun();
    findings.push(takeover("after the freeze", frozenAt, last));
    cast.act(sleeper, "SIGCONT");
    const reason = await cast.ended(sleeper);
    const told = reason === undefined ? "wrote after it had resumed" : `learned of its loss when it resumed: ${reason}`;
    findings.push(judged("the frozen process", reason !== undefined, told));
    cast.answer(last[0]);
    await cast.ended(last[0]);
  } finally {
    const { violations, sections, handOvers, hosts } = cast;
    const seen = violations[0] ?? `${sections} sections on three processes, each saw what the one before had written`;
    const isSeen = sections > TURNS || violations.length > 0;
    findings.push(
      isSeen ? judged("never two at once", violations.length === 0, seen) : ["never two at once", "not seen", seen],
    );
    findings.push(["a lock that nobody else wants", "", percentiles(locks)]);
    findings.push(["a hand-over to another process", "", percentiles(handOvers)]);
    findings.push(["used", "", usedBy([own, ...hosts.flatMap(({ used }) => used ?? [])])]);
  }
}

/** Removes the row of a lock whose holders have all ended. */
async function remove(mutex: Mutex): Promise<undefined> {
  const holder = await mutex.inspect();
  if (holder === null) return;
  if (holder.uuid !== undefined) await mutex.forceUnlock(holder.uuid, { now: true });
  await (await mutex.lock({ waitMs: LATE_MS })).unlock();
}

function permissions({ permissions: answers, problems, usable, batches }: TableReport): Finding {
  const missing = Object.keys(answers).filter((action) => answers[action as keyof typeof answers] !== "allowed");
  const others = problems.filter(({ code, severity }) => code !== "permission" && severity === "error");
  const wrong = [...missing.map((action) => `dynamodb:${action} is missing`), ...others.map(({ code }) => code)];
  const optional = batches?.usable === false ? ["dynamodb:PartiQLUpdate, which is optional, is missing"] : [];
  const text = [...wrong, ...optional, ...(usable ? [] : ["nothing else was tried"])].join("; ");
  return judged("table and permissions", wrong.length === 0, text || "nothing is missing");
}

function percentiles(ms: readonly number[]): string {
  const sorted = ms.toSorted((one, other) => one - other);
  const at = (share: number): string => `${sorted[Math.ceil(share * sorted.length) - 1]?.toFixed(1)} ms`;
  return sorted.length === 0 ? "not seen" : `p50 ${at(0.5)}, p99 ${at(0.99)}, of ${sorted.length}`;
}

function usedBy(each: readonly Used[]): string {
  const sum = (unit: keyof Used): number => each.reduce((total, used) => total + used[unit], 0);
  const [requests, writes, reads] = [sum("requests"), sum("writeUnits"), sum("readUnits")];
  return `${requests} requests, ${writes} write units, ${reads} read units; and about 10 requests of check()`;
}

/** A report that names neither table nor account. */
function markdown({ table }: TableReport, ttlMs: number, findings: readonly Finding[]): string {
  const { version } = createRequire(import.meta.url)("dynamutex/package.json");
  const region = process.env.AWS_REGION ?? "Region of the profile";
  const cells = findings.map(([what, verdict, text]) => [what, [verdict, text].filter(Boolean).join(": ")]);
  return `
### Rehearsal of dynamutex ${version}

Node.js ${process.version}, ${process.platform}; ${region}, ${table?.billing ?? "a table that is not described"}; leases of ${showDuration(ttlMs)}.

| | |
|---|---|
${cells.map((row) => `| ${row.map((cell) => printable(cell).replaceAll("|", "\\|")).join(" | ")} |\n`).join("")}`;
}
