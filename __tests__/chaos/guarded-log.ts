import { setTimeout as sleep } from "node:timers/promises";
import {
  type DynamoDBClient,
  TransactionCanceledException,
  type TransactWriteItem,
  TransactWriteItemsCommand,
} from "@aws-sdk/client-dynamodb";
import type { FencedLock } from "../../lib/index.js";
import type { Random } from "../support/seeded-random.js";
import { nextLine } from "./append.js";
import { breakGuard, type Defect } from "./defects.js";
import { TTL_MS } from "./lock-groups.js";
import type { Line, Log, Register } from "./register.js";

/** What became of a guarded write. */
export type GuardedOutcome = "written" | "refused by the guard" | "not written" | "no answer";

/** What a guarded log tells of. */
export interface GuardedLogEvents {
  /** The last line has this place: 0 for none. */
  looked(version: number): void;
  /** A guard has refused a write inside of the section. `held`: a renewal after that succeeded all the same. */
  refused(held: boolean): void;
}

interface Parts {
  readonly register: Register;
  readonly lock: FencedLock;
  /** Meets the same faults as the requests of the library. */
  readonly client: DynamoDBClient;
  readonly random: Random;
  readonly defect: Defect | undefined;
  readonly events: GuardedLogEvents;
}

/**
 * The log as a section of a fenced lock writes it: each line by a transaction that the lock guards. Half of them are sent by
 * `transactWrite()`, half by hand with the guard alone, some of these long after the guard was made.
 */
export class GuardedLog implements Log {
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  async last(): Promise<Line | undefined> {
    const last = await this.#parts.register.last();
    this.#parts.events.looked(last?.version ?? 0);
    return last;
  }

  /** @throws whatever kept the line from being written, or from being known as written. */
  async put(line: Line): Promise<Line> {
    const { lock, random, defect } = this.#parts;
    const fenced = { ...line, token: lock.fencingToken };
    if (defect !== "unguarded" && random() < 0.5) {
      await lock.transactWrite([this.#put(fenced)], { withinMs: 2_000 });
      return fenced;
    }
    const guard = await lock.guard();
    await sleep((random() < 0.2 ? TTL_MS : 50) * random());
    // With the lock lost meanwhile, the next holder shall be in when the write arrives.
    if (!lock.held) await sleep(TTL_MS * random());
    await this.#send(fenced, guard).catch(async (error: unknown) => {
      if (outcomeOf(error) === "refused by the guard") await this.#findLoss();
      throw error;
    });
    return fenced;
  }

  /**
   * Prepares a line while the lock is held, to be sent when it is not any more.
   * @throws LockLostError, and what else has kept it from being prepared.
   */
  async prepare(own: Pick<Line, "section" | "step">): Promise<() => Promise<GuardedOutcome>> {
    const { lock } = this.#parts;
    const line = { ...nextLine(await this.last(), lock, own), token: lock.fencingToken };
    const guard = await lock.guard();
    return () => this.#send(line, guard).then(() => "written", outcomeOf);
  }

  async #send(line: Line, guard: TransactWriteItem): Promise<void> {
    const { client, defect } = this.#parts;
    const TransactItems = [this.#put(line), ...breakGuard(guard, defect)];
    await client.send(new TransactWriteItemsCommand({ TransactItems }));
  }

  #put(line: Line): TransactWriteItem {
    return { Put: this.#parts.register.putOf(line) };
  }

  /** A guard that was sent by hand does not tell the lock. @throws LockLostError, as the next renewal would. */
  async #findLoss(): Promise<void> {
    const { lock, events } = this.#parts;
    let held = false;
    try {
      await lock.extend();
      held = true;
    } finally {
      events.refused(held);
    }
  }
}

/** The guard is the second item. */
function outcomeOf(error: unknown): GuardedOutcome {
  if (!(error instanceof TransactionCanceledException)) return "no answer";
  return error.CancellationReasons?.[1]?.Code === "ConditionalCheckFailed" ? "refused by the guard" : "not written";
}
