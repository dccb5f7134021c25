import { WRITER_SORT } from "../../lib/protocol/addresses.js";
import type { Row } from "../../lib/protocol/row.js";
import type { Coverage } from "./coverage.js";
import type { Holding } from "./invariants.js";
import type { Process } from "./machine.js";
import type { Answer, Message } from "./message.js";
import type { Scheduler } from "./scheduler.js";

/** For how long after its take a row may not yet be handed out: it may be renewed before, and then the look counts from there. */
const MOST_DELAY_MS = 3_500;

/** What a process has seen of the writer of one shared mutex, on its monotonic clock. */
interface Seen {
  /** When it was last shown that no writer is there. */
  clearAt: number;
  /** When it was first shown a writer since; undefined where it was not. */
  writerAt: number | undefined;
}

/**
 * Watches the sections of the shared side that join others of their process: not for longer than `handOverMs` without a look
 * for a writer, and no more after one that has shown one. So a writer that waits gets in.
 */
export class JoinJudge {
  readonly #scheduler: Scheduler;
  readonly #coverage: Coverage;
  readonly #epoch: number;
  readonly #seen = new WeakMap<Process, Map<string, Seen>>();
  /** When the first section on a row began, by uuid. */
  readonly #begun = new Map<string, number>();

  constructor(scheduler: Scheduler, coverage: Coverage, epoch: number) {
    this.#scheduler = scheduler;
    this.#coverage = coverage;
    this.#epoch = epoch;
  }

  /** A section begins. @returns whom it should have let in. */
  took({ asking: { kind, name }, uuid, process, joinMs }: Holding): string | undefined {
    if (kind !== "shared") return undefined;
    const now = process.time.monotonic();
    const begunAt = this.#begun.get(uuid);
    if (begunAt === undefined) {
      this.#begun.set(uuid, now);
      return undefined;
    }
    this.#coverage.count("sections that joined others");
    const { clearAt, writerAt } = this.#of(process, name);
    const blindMs = now - Math.max(clearAt, begunAt);
    if (blindMs > joinMs + MOST_DELAY_MS) return `${uuid} is joined after ${blindMs} ms without a look for a writer`;
    const knownMs = writerAt === undefined ? 0 : now - Math.max(writerAt, begunAt);
    if (knownMs > joinMs + MOST_DELAY_MS / 2)
      return `${uuid} is joined ${knownMs} ms after its process has seen a writer`;
    return undefined;
  }

  /** A reply that a process has heard. */
  heard(process: Process, _message: Message, answer: Answer): void {
    if (answer.kind === "read" && answer.at.sort === WRITER_SORT) this.#looked(process, answer.at.name, answer.row);
    if (answer.kind !== "query") return;
    const { name, first, last, after = "" } = answer.query;
    if (first > WRITER_SORT || last < WRITER_SORT || after >= WRITER_SORT) return;
    this.#looked(
      process,
      name,
      answer.page.rows.find(({ sort }) => sort === WRITER_SORT),
    );
  }

  #looked(process: Process, name: string, row: Row | undefined): void {
    const seen = this.#of(process, name);
    const now = process.time.monotonic();
    // One whose lease is about over may be taken for dead.
    const isThere = row?.uuid !== undefined && row.expires > this.#epoch + this.#scheduler.now;
    if (isThere) seen.writerAt ??= now;
    else [seen.clearAt, seen.writerAt] = [now, undefined];
  }

  #of(process: Process, name: string): Seen {
    const all = this.#seen.get(process) ?? new Map<string, Seen>();
    this.#seen.set(process, all);
    const seen = all.get(name) ?? { clearAt: Number.NEGATIVE_INFINITY, writerAt: undefined };
    all.set(name, seen);
    return seen;
  }
}
