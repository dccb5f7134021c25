import { WRITER_SORT } from "../../../lib/protocol/addresses.js";
import type { Row } from "../../../lib/protocol/row.js";
import type { Answer } from "../../support/message.js";
import type { Holding } from "./invariants.js";
import type { Process } from "./machine.js";
import type { Change, Sender } from "./network.js";
import { entryOf, Watcher } from "./watcher.js";

/** For how long a look at the queue counts, where the lock is fair; stopwatches may run slow. */
const LOOK_LASTS_MS = 3_000 * 1.001;
const SLACK_MS = 10;

/** The share of its lease for which a watcher cannot have seen a row unchanged, whatever its stopwatch's rate. */
const UNWATCHED = 0.99;

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
export class JoinJudge extends Watcher {
  readonly #seen = new WeakMap<Process, Map<string, Seen>>();
  /** When the first section on a row began, by uuid. */
  readonly #begun = new Map<string, number>();
  /** When a row was last heard to be renewed, in virtual ms: a section may have waited for that before it joined. */
  readonly #renewed = new Map<string, number>();
  /** Until when nobody can take a writer for dead, in virtual ms. */
  readonly #writers = new Map<string, number>();

  /** A section begins. @returns whom it should have let in. */
  took({ asking: { kind, name }, uuid, process, joinMs, isFair }: Holding): string | undefined {
    if (kind !== "shared") return undefined;
    const now = process.time.monotonic();
    const begunAt = this.#begun.get(uuid);
    if (begunAt === undefined) {
      this.#begun.set(uuid, now);
      return undefined;
    }
    this.count("sections that joined others");
    if (this.now - (this.#renewed.get(uuid) ?? 0) < SLACK_MS) return undefined;
    const { clearAt, writerAt } = this.#of(process, name);
    const mostMs = joinMs + (isFair ? LOOK_LASTS_MS : 0) + SLACK_MS;
    const blindMs = now - Math.max(clearAt, begunAt);
    if (blindMs > mostMs) return `${uuid} is joined after ${blindMs} ms without a look for a writer`;
    const knownMs = writerAt === undefined ? 0 : now - Math.max(writerAt, begunAt);
    return knownMs > mostMs ? `${uuid} is joined ${knownMs} ms after its process has seen a writer` : undefined;
  }

  /** A row has changed. */
  arrived({ before, after }: Change): void {
    if (after?.uuid === undefined || after.sort !== WRITER_SORT) return;
    // A mark changes nothing that a watcher goes by.
    if (before?.uuid === after.uuid && before.expires === after.expires) return;
    this.#writers.set(after.uuid, this.now + after.ttlMs * UNWATCHED);
  }

  /** A reply that a process has heard. */
  heard(sender: Sender, answer: Answer): void {
    if (answer.kind === "write" && answer.write.kind === "renew") this.#renewed.set(answer.write.uuid, this.now);
    if (answer.kind === "read" && answer.at.sort === WRITER_SORT) this.#looked(sender, answer.at.name, answer.row);
    if (answer.kind !== "query") return;
    const { name, first, last, after = "" } = answer.query;
    if (first > WRITER_SORT || last < WRITER_SORT || after >= WRITER_SORT) return;
    const writer = answer.page.rows.find(({ sort }) => sort === WRITER_SORT);
    this.#looked(sender, name, writer);
  }

  #looked({ process, owner }: Sender, name: string, row: Row | undefined): void {
    const seen = this.#of(process, name);
    const now = process.time.monotonic();
    // A writer of its own that its process has given up is in nobody's way there.
    const isThere =
      row?.uuid !== undefined &&
      row.owner !== owner &&
      row.expires > this.tableTime &&
      (this.#writers.get(row.uuid) ?? 0) > this.now;
    if (isThere) seen.writerAt ??= now;
    else [seen.clearAt, seen.writerAt] = [now, undefined];
  }

  #of(process: Process, name: string): Seen {
    const all = entryOf(this.#seen, process, () => new Map<string, Seen>());
    return entryOf(all, name, () => ({ clearAt: Number.NEGATIVE_INFINITY, writerAt: undefined }));
  }
}
