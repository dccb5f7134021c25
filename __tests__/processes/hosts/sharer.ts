import { setTimeout as sleep } from "node:timers/promises";
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import {
  findLockLost,
  type Lock,
  type Lockable,
  LockStoreError,
  LockTable,
  type MutexOptions,
} from "../../../lib/index.js";
import { append } from "../../chaos/append.js";
import { Register } from "../../chaos/register.js";
import { testClientConfig } from "../../support/endpoint.js";
import { hostConfig, report } from "../../support/host-process.js";
import { type Side, sectionOf } from "../crowd.js";

export interface SharerConfig {
  readonly tableName: string;
  /** Tells its sections from those of all other processes. */
  readonly host: string;
  readonly options: MutexOptions;
  readonly permits: number;
  /** How many sections it is to run on the semaphore, and how many on the shared mutex. */
  readonly sections: Readonly<Record<Work, number>>;
}

export type Work = "semaphore" | "sharedMutex";

export interface SharerMessage {
  readonly kind: "entered" | "left" | "lost";
  readonly section: string;
  readonly work: Work;
  readonly [other: string]: unknown;
}

/** So many callers of a process ask for each lock at once. */
const CALLERS = 2;

const { tableName, host, options, permits, sections } = hostConfig<SharerConfig>();
const tell = (message: SharerMessage): void => report(message);
const client = new DynamoDBClient(testClientConfig());
await using locks = new LockTable({ tableName, owner: host, ...options });
const semaphore = locks.semaphore("api", { permits });
const { shared, exclusive } = locks.sharedMutex("catalogue");

/** A section writes a line when it begins and one when it ends, and does so while it holds the lock, as far as it can tell. */
async function section(work: Work, side: Side, number: number, lockable: Lockable): Promise<void> {
  const name = sectionOf(side, `${host}/${work}/${number}`);
  const log = new Register(client, tableName, work);
  const line = (lock: Lock, step: number) => append(log, lock, { section: name, step }, () => undefined);
  try {
    await lockable.run(async (lock) => {
      await line(lock, 1);
      tell({ kind: "entered", section: name, work });
      await sleep(10 * Math.random());
      await line(lock, 2);
    });
    tell({ kind: "left", section: name, work });
  } catch (error) {
    const lost = findLockLost(error);
    if (lost !== undefined) return tell({ kind: "lost", section: name, work, reason: lost.reason });
    // A machine that is busy may answer more slowly than a lease lasts: its program tries again.
    if (!(error instanceof LockStoreError)) throw error;
    await sleep(200);
    await section(work, side, number, lockable);
  }
}

/** Every fourth section on the shared mutex is exclusive. */
async function callers(work: Work): Promise<void> {
  let next = 0;
  const caller = async (): Promise<void> => {
    for (let number = next++; number < sections[work]; number = next++) {
      if (work === "semaphore") await section(work, "permit", number, semaphore);
      else if (number % 4 === 3) await section(work, "exclusive", number, exclusive);
      else await section(work, "shared", number, shared);
    }
  };
  await Promise.all(Array.from({ length: CALLERS }, caller));
}

await Promise.all([callers("semaphore"), callers("sharedMutex")]);
