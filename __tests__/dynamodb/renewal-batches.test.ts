import { describe, expect, test } from "@jest/globals";
import { RenewalBatches } from "../../lib/dynamodb/renewal-batches.js";
import { LockStoreError } from "../../lib/errors.js";
import { lockAt } from "../../lib/protocol/addresses.js";
import type { Renew } from "../../lib/protocol/writes.js";
import type { WriteOutcome } from "../../lib/store.js";
import { hear } from "../support/diagnostics.js";
import { turn } from "../support/eventually.js";
import { APPLIED, GONE, renewalOf } from "../support/write-cases.js";

type Answer = readonly (WriteOutcome | LockStoreError)[];

const forever = new AbortController().signal;
const renewals = (count: number): Renew[] =>
  Array.from({ length: count }, (_, index) => renewalOf(lockAt(`lock-${index}`), `uuid-${index}`, 100 + index));

/** A table that answers as it is told. */
class Table {
  /** The names of the rows of each request. */
  readonly sent: string[][] = [];
  readonly signals: AbortSignal[] = [];
  answer: (renewals: readonly Renew[]) => Answer | Promise<Answer> = (all) => all.map(() => APPLIED);
  one: (renewal: Renew) => WriteOutcome = () => APPLIED;
  readonly batches = new RenewalBatches({
    one: async (renewal) => {
      this.sent.push([renewal.at.name]);
      return this.one(renewal);
    },
    all: async (all, signal) => {
      this.sent.push(all.map(({ at }) => at.name));
      this.signals.push(signal);
      return await this.answer(all);
    },
  });

  /** How many went together, request by request, of so many that leave in one turn. */
  async sizes(count: number): Promise<number[]> {
    const before = this.sent.length;
    await Promise.all(renewals(count).map((renewal) => this.batches.write(renewal, forever)));
    return this.sent.slice(before).map(({ length }) => length);
  }

  /** Until as many as possible go together. */
  async warmUp(): Promise<void> {
    for (let count = 1; count <= 32; count *= 2) await this.sizes(count);
    this.sent.length = 0;
  }

  /** What each of these comes to, asked for in one turn. */
  write(asked: readonly Renew[], signal = forever): Promise<unknown[]> {
    return Promise.all(asked.map((renewal) => this.batches.write(renewal, signal).catch((error) => error)));
  }
}

async function warmTable(): Promise<Table> {
  const table = new Table();
  await table.warmUp();
  return table;
}

describe("how many renewals go together", () => {
  test("doubles from one with each answer, up to 25, and what is left of a turn goes in another request", async () => {
    const table = new Table();
    expect(await table.sizes(3)).toEqual([1, 1, 1]);
    expect(await table.sizes(5)).toEqual([2, 2, 1]);
    expect(await table.sizes(9)).toEqual([4, 4, 1]);
    expect(await table.sizes(16)).toEqual([8, 8]);
    expect(await table.sizes(17)).toEqual([16, 1]);
    expect(await table.sizes(60)).toEqual([25, 25, 10]);
  });

  test("is a quarter of those that got no answer together, so that each is alone after two more attempts", async () => {
    const table = await warmTable();
    table.answer = () => {
      throw new LockStoreError("no answer", { transient: true, answered: false });
    };
    const all = renewals(25);
    for (const sizes of [[25], [6, 6, 6, 6, 1], Array(25).fill(1)]) {
      table.sent.length = 0;
      await table.write(all);
      expect(table.sent.map(({ length }) => length)).toEqual(sizes);
    }
    table.answer = (asked) => asked.map(() => APPLIED);
    expect(await table.sizes(24)).toEqual([24]);
  });

  test("rows of more than 10 KB go alone, as far as their sizes are known", async () => {
    const table = await warmTable();
    for (const { at } of renewals(4)) table.batches.note(at, 11 * 1_024);
    expect((await table.sizes(6)).sort()).toEqual([1, 1, 1, 1, 2]);
    table.batches.note(lockAt("lock-1"), 0);
    expect((await table.sizes(6)).sort()).toEqual([1, 1, 1, 3]);
  });
});

describe("each renewal has an outcome of its own", () => {
  test("trap 41: a refusal, a failure and a missing answer are one renewal's, whatever the others of its batch come to", async () => {
    const table = await warmTable();
    const refused = { ...GONE, retried: true } as WriteOutcome;
    const throttled = new LockStoreError("throttled", { transient: true, throttled: true });
    table.answer = (all) => all.map((_, index) => [APPLIED, refused, throttled][index % 3] as WriteOutcome);
    expect(await table.write(renewals(6))).toEqual([APPLIED, refused, throttled, APPLIED, refused, throttled]);
    expect(table.sent.at(-1)).toHaveLength(6);
  });

  test("each is sent as it was asked for: with its own key, uuid and stamp", async () => {
    const table = await warmTable();
    let sent: readonly Renew[] = [];
    table.answer = (all) => {
      sent = all;
      return all.map(() => APPLIED);
    };
    const asked = renewals(7);
    await table.write(asked);
    expect(sent).toEqual(asked);
  });

  test("a row is in no batch twice", async () => {
    const table = await warmTable();
    await table.write([...renewals(2), ...renewals(2)]);
    expect(table.sent).toEqual([
      ["lock-0", "lock-1"],
      ["lock-0", "lock-1"],
    ]);
  });

  test("what is asked for in another turn goes by itself", async () => {
    const table = await warmTable();
    const [one, other] = renewals(2) as [Renew, Renew];
    const first = table.batches.write(one, forever);
    await turn();
    await Promise.all([first, table.batches.write(other, forever)]);
    expect(table.sent).toEqual([["lock-0"], ["lock-1"]]);
  });
});

describe("a batch whose members give up", () => {
  test("is aborted when the last of them has, and not before", async () => {
    const table = await warmTable();
    table.answer = () => new Promise(() => {});
    const controllers = [new AbortController(), new AbortController()];
    renewals(2).forEach((renewal, index) => {
      void table.batches.write(renewal, (controllers[index] as AbortController).signal);
    });
    await turn();
    const request = table.signals.at(-1);
    controllers[0]?.abort(new Error("too late"));
    expect(request?.aborted).toBe(false);
    controllers[1]?.abort(new Error("too late as well"));
    expect(request).toMatchObject({ aborted: true, reason: { message: "too late as well" } });
  });

  test("one that gives up before its turn leaves is not sent", async () => {
    const table = await warmTable();
    const controller = new AbortController();
    const [one, other] = renewals(2) as [Renew, Renew];
    const given = table.batches.write(one, controller.signal);
    const kept = table.batches.write(other, forever);
    controller.abort(new Error("given up"));
    await expect(given).rejects.toThrow("given up");
    expect(await kept).toEqual(APPLIED);
    expect(table.sent).toEqual([["lock-1"]]);
  });
});

describe("where batches cannot be used", () => {
  const failed = (name: string) =>
    new LockStoreError("PartiQLUpdate failed", { cause: Object.assign(new Error("no"), { name }) });
  const denied = () => failed("AccessDeniedException");

  test("those of a refused batch are sent one by one, each gets its own outcome, and it is told once", async () => {
    const told = hear("dynamutex:one-by-one");
    const table = await warmTable();
    table.answer = () => {
      throw denied();
    };
    table.one = ({ at }) => (at.name === "lock-1" ? GONE : APPLIED);
    expect(await table.write(renewals(30))).toEqual(
      renewals(30).map(({ at }) => (at.name === "lock-1" ? GONE : APPLIED)),
    );
    expect(table.sent.map(({ length }) => length)).toEqual([25, 5, ...Array(30).fill(1)]);
    expect(await table.sizes(4)).toEqual([1, 1, 1, 1]);
    expect(told).toEqual([{ cause: expect.objectContaining({ message: "PartiQLUpdate failed" }) }]);
  });

  test("a statement that lacks the permission is sent by itself, and the others keep what they were told", async () => {
    const told = hear("dynamutex:one-by-one");
    const table = await warmTable();
    table.answer = (all) => all.map((_, index) => (index === 1 ? denied() : GONE));
    expect(await table.write(renewals(3))).toEqual([GONE, APPLIED, GONE]);
    expect(table.sent).toEqual([["lock-0", "lock-1", "lock-2"], ["lock-1"]]);
    expect(told).toHaveLength(1);
  });

  test("one whose caller has given up by then is not sent again", async () => {
    const table = await warmTable();
    const controller = new AbortController();
    table.answer = () => {
      controller.abort(new Error("too late"));
      throw denied();
    };
    const [one, other] = renewals(2) as [Renew, Renew];
    const given = table.batches.write(one, controller.signal);
    const kept = table.batches.write(other, forever);
    await expect(given).rejects.toThrow("PartiQLUpdate failed");
    expect(await kept).toEqual(APPLIED);
    expect(table.sent).toEqual([["lock-0", "lock-1"], ["lock-1"]]);
  });

  test.each(["UnknownOperationException", "ValidationException", "UnknownError", "TypeError", "Error"])(
    "%s means that there are none",
    async (name) => {
      const table = await warmTable();
      table.answer = () => {
        throw failed(name);
      };
      expect(await table.write(renewals(2))).toEqual([APPLIED, APPLIED]);
      expect(await table.sizes(4)).toEqual([1, 1, 1, 1]);
    },
  );

  test.each([
    "ExpiredTokenException",
    "ResourceNotFoundException",
    "UnrecognizedClientException",
    "CredentialsProviderError",
    "NobodyHasMetThisException",
  ])("%s says nothing about batches: it is thrown, and the next ones go together again", async (name) => {
    const told = hear("dynamutex:one-by-one");
    const table = await warmTable();
    const failure = failed(name);
    table.answer = () => {
      throw failure;
    };
    expect(await table.write(renewals(2))).toEqual([failure, failure]);
    table.answer = (all) => all.map(() => APPLIED);
    await table.warmUp();
    expect(await table.sizes(4)).toEqual([4]);
    expect(told).toEqual([]);
  });
});
