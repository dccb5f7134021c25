import type { Row } from "../../../lib/protocol/row.js";
import type { Take } from "../../../lib/protocol/writes.js";
import type { Process } from "./machine.js";
import { entryOf, Watcher } from "./watcher.js";

/** By how much less a process may measure of a time: it is the slower of two stopwatches, and timers ring a little early. */
const SLOWEST = 1 - 2e-3;
const SLACK_MS = 1;

/** Whoever leaves a row alone for so long has begun a new turn when it comes back. */
const LEFT_ALONE_MS = 700;

/** For how long a mark that was found is certainly believed: half of the time that it is written for. */
const BELIEVED_MS = 30_000;

/** What is known of a process that takes turns for a name with others. */
interface Turn {
  /** Since when it has had the row, as far as it was not shown another's; undefined where it has not. */
  since: number | undefined;
  /** When it has sent its last release. */
  leftAt: number;
  /** A mark that a release has shown to it, and when. */
  mark: { readonly wanted: number; readonly foundAt: number } | undefined;
  /** Whether the last that it heard of the row is that its claim was refused. */
  isRefused: boolean;
}

/**
 * Watches the turns that processes take where their mutexes are not fair, whatever their sections ask for:
 *
 * - Who has had the row for `handOverMs`, and is shown by a release that others wait, lets them in.
 * - A mark that a release has shown is on the rows of the takes that follow, until a look has shown anything else.
 * - Who was refused looks again before it marks the row.
 */
export class TurnJudge extends Watcher {
  readonly #turns = new Map<Process, Map<string, Turn>>();
  /** Claims of which a copy has left. */
  readonly #claimed = new Set<string>();

  /** A process uses a mutex of this name. */
  begin(process: Process, name: string): void {
    const turns = entryOf(this.#turns, process, () => new Map<string, Turn>());
    const leftAt = Number.NEGATIVE_INFINITY;
    entryOf(turns, name, () => ({ since: undefined, leftAt, mark: undefined, isRefused: false }));
  }

  /** A section of it begins. */
  took(process: Process, name: string): void {
    const turn = this.#of(process, name);
    if (turn === undefined) return;
    const now = process.time.monotonic();
    if (turn.since === undefined || now - turn.leftAt >= LEFT_ALONE_MS) turn.since = now;
    turn.leftAt = Number.POSITIVE_INFINITY;
  }

  /** It sends a release. */
  left(process: Process, name: string): void {
    const turn = this.#of(process, name);
    if (turn !== undefined) turn.leftAt = process.time.monotonic();
  }

  /** Its release has shown the row as it was. @returns whether it has to let others in. */
  released(
    process: Process,
    { name, handOverMs }: { readonly name: string; readonly handOverMs: number },
    row: Row | undefined,
  ): boolean {
    const turn = this.#of(process, name);
    if (turn === undefined || row?.wanted === undefined || this.#isOver(row.wanted)) return false;
    this.count("releases that showed a mark");
    const now = process.time.monotonic();
    turn.mark = { wanted: row.wanted, foundAt: now };
    if (turn.since === undefined || (now - turn.since) * SLOWEST - SLACK_MS < handOverMs) return false;
    this.count("releases after which others were let in");
    return true;
  }

  /** A claim of it is refused. */
  refused(process: Process, name: string): void {
    const turn = this.#of(process, name);
    if (turn !== undefined) [turn.since, turn.isRefused] = [undefined, true];
  }

  /** A read has shown it the row. */
  looked(process: Process, name: string): void {
    const turn = this.#of(process, name);
    if (turn !== undefined) [turn.since, turn.mark, turn.isRefused] = [undefined, undefined, false];
  }

  /** It knows what the judge does not: who had the row in between. */
  sees(process: Process, name: string): void {
    const turn = this.#of(process, name);
    if (turn !== undefined) turn.since = undefined;
  }

  /** What is wrong with a mark that it sends. */
  marks(process: Process, name: string): string | undefined {
    return this.#of(process, name)?.isRefused ? `${name} is marked without a look` : undefined;
  }

  /** What is wrong with a take that it sends. A further copy says what the first one said. */
  carries(process: Process, { at, uuid, wanted }: Take): string | undefined {
    const isFirst = !this.#claimed.has(uuid);
    this.#claimed.add(uuid);
    const mark = isFirst ? this.#of(process, at.name)?.mark : undefined;
    if (mark === undefined || this.#isOver(mark.wanted)) return undefined;
    // A claim may be about to leave at the moment at which the answer comes.
    const foundMsAgo = process.time.monotonic() - mark.foundAt;
    if (foundMsAgo === 0 || foundMsAgo > BELIEVED_MS) return undefined;
    this.count("takes that carried a mark on");
    return wanted === undefined ? `${uuid} forgets that others wait until ${mark.wanted}` : undefined;
  }

  #isOver(wanted: number): boolean {
    return wanted <= this.tableTime;
  }

  #of(process: Process, name: string): Turn | undefined {
    return this.#turns.get(process)?.get(name);
  }
}
