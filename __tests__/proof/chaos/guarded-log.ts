import { setTimeout as sleep } from "node:timers/promises";
import {
  type DynamoDBClient,
  TransactionCanceledException,
  type TransactWriteItem,
  TransactWriteItemsCommand,
} from "@aws-sdk/client-dynamodb";
import type { Lock } from "../../../lib/index.js";
import { now } from "../../support/monotonic.js";
import type { Random } from "../../support/seeded-random.js";
import { nextLine } from "./append.js";
import { breakGuard, type Defect } from "./defects.js";
import { TTL_MS } from "./lock-groups.js";
import type { Line, Log } from "./register.js";
import type { WorkerMessage } from "./worker-messages.js";

/** What became of a guarded write. */
export type GuardedOutcome = "written" | "refused by the guard" | "not written" | "no answer";

type Sent =
  | { readonly kind: "written" }
  | { readonly kind: Exclude<GuardedOutcome, "written">; readonly error: unknown };

/** A log in the table, whose lines are put there by transactions. */
export interface GuardedRegister extends Pick<Log, "last"> {
  /** What puts this line where it belongs. `isLate`: its section is over, so that only its guard is to refuse it. */
  itemsOf(line: Line, how: { readonly isLate: boolean }): readonly TransactWriteItem[];
  /** The same line, if an earlier copy of it has got there and `last()` does not tell. */
  find?(line: Line): Promise<Line | undefined>;
}

interface Parts {
  readonly name: string;
  readonly section: string;
  readonly register: GuardedRegister;
  readonly lock: Lock;
  /** Where the lock has one. */
  readonly token: string | undefined;
  /** Meets the same faults as the requests of the library. */
  readonly client: DynamoDBClient;
  readonly random: Random;
  readonly defect: Defect | undefined;
  readonly tell: (message: WorkerMessage) => void;
}

/**
 * The log as a section of a lock that guards it writes it: each line by a transaction that the lock guards. Half of them are sent by
 * `transactWrite()`, half by hand with the guard alone, some of these long after the guard was made.
 */
export class GuardedLog implements Log {
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  async last(): Promise<Line | undefined> {
    const { register, name, section, token, tell } = this.#parts;
    const last = await register.last();
    if (token !== undefined) tell({ kind: "looked", logs: [name], section, token, place: last?.place ?? 0 });
    return last;
  }

  /** @throws whatever kept the line from being written, or from being known as written. */
  async put(line: Line): Promise<Line> {
    const { register, lock, token, random, defect } = this.#parts;
    const fenced = { ...line, token };
    const there = await register.find?.(line);
    if (there !== undefined) return there;
    if (defect !== "unguarded" && random() < 0.5) {
      await lock.transactWrite(this.#items(fenced, { isLate: false }), { timeoutMs: 2_000 });
      return fenced;
    }
    const guard = await lock.guard();
    await sleep((random() < 0.2 ? TTL_MS : 50) * random());
    // With the lock lost meanwhile, the next holder shall be in when the write arrives.
    if (!lock.held) await sleep(TTL_MS * random());
    const outcome = await this.#send(fenced, guard, { isLate: false });
    if (outcome.kind === "written") return fenced;
    if (outcome.kind === "refused by the guard") await this.#findLoss();
    throw outcome.error;
  }

  /**
   * Prepares a line while the lock is held, to be sent when it is not any more.
   * @throws LockLostError, and what else has kept it from being prepared.
   */
  async prepare(step: number): Promise<() => Promise<GuardedOutcome>> {
    const { lock, section, token } = this.#parts;
    const line = { ...nextLine(await this.last(), lock, { section, step }), token };
    const guard = await lock.guard();
    return async () => (await this.#send(line, guard, { isLate: true })).kind;
  }

  async #send(line: Line, guard: TransactWriteItem, how: { readonly isLate: boolean }): Promise<Sent> {
    const { client, defect } = this.#parts;
    const items = this.#items(line, how);
    const TransactItems = [...items, ...breakGuard(guard, defect)];
    try {
      await client.send(new TransactWriteItemsCommand({ TransactItems }));
      return { kind: "written" };
    } catch (error) {
      if (!(error instanceof TransactionCanceledException)) return { kind: "no answer", error };
      const isRefused = error.CancellationReasons?.[items.length]?.Code === "ConditionalCheckFailed";
      return { kind: isRefused ? "refused by the guard" : "not written", error };
    }
  }

  /** To be sent at once. */
  #items(line: Line, how: { readonly isLate: boolean }): readonly TransactWriteItem[] {
    return this.#parts.register.itemsOf({ ...line, sentAt: now() }, how);
  }

  /** A guard that was sent by hand does not tell the lock. @throws LockLostError, as the next renewal would. */
  async #findLoss(): Promise<void> {
    const { lock, section, tell } = this.#parts;
    let held = false;
    try {
      await lock.extend();
      held = true;
    } finally {
      tell({ kind: "refused", section, held });
    }
  }
}
