import { randomUUID } from "node:crypto";
import { CreateTableCommand } from "@aws-sdk/client-dynamodb";
import { beforeAll, describe, expect, test } from "@jest/globals";
import { type TableLayout, tableLayout } from "../../lib/options/table.js";
import type { Write } from "../../lib/protocol/writes.js";
import { IS_FULL } from "../support/full.js";
import { generatedPair, type Pair } from "../support/generated-writes.js";
import { difference, type EngineResult, type Expressions, engineResults, isSpoiled } from "../support/parity.js";
import { testClient } from "../support/table.js";
import { tableInput } from "../support/table-input.js";

/** The same pairs for every change; PARITY_SEED and PARITY_PAIRS play others, and more. */
const SEED = Number(process.env.PARITY_SEED ?? 1);
const PAIRS = Array.from({ length: Number(process.env.PARITY_PAIRS ?? (IS_FULL ? 1_500 : 1_200)) }, (_, index) =>
  generatedPair(SEED, index),
);
/** So many pairs at a time meet a defect, until one of them shows it. */
const CHUNK = 50;

const client = testClient({ maxAttempts: 3 });
let layout: TableLayout;

beforeAll(async () => {
  // Reserved words and a prefix: no name goes out as it is.
  const keys = { partition: "key", sort: "order", ttl: "ttl" };
  layout = tableLayout({ tableName: `test-${randomUUID()}`, keys, keyPrefix: "lock#" });
  await client.send(
    new CreateTableCommand(
      tableInput(layout.tableName, {
        AttributeDefinitions: ["key", "order"].map((AttributeName) => ({ AttributeName, AttributeType: "S" })),
        KeySchema: [
          { AttributeName: "key", KeyType: "HASH" },
          { AttributeName: "order", KeyType: "RANGE" },
        ],
      }),
    ),
  );
});

/** The first difference among pairs; undefined if there is none. */
function firstDifference(engine: readonly EngineResult[], pairs: readonly Pair[] = PAIRS): object | undefined {
  for (const [index, pair] of pairs.entries()) {
    const found = difference(layout, pair, engine[index] as EngineResult);
    if (found !== undefined) return { seed: SEED, name: pair.at.name, ...found };
  }
  return undefined;
}

/**
 * A request that DynamoDB rejects as invalid is a difference, too: a condition lets nothing through that DynamoDB cannot
 * do. Numbers that it could not count any further are left out.
 */
describe(`with seed ${SEED}`, () => {
  let engine: readonly EngineResult[];

  beforeAll(async () => {
    engine = await engineResults(client, layout, PAIRS);
  });

  test("DynamoDB does with the compiled request what the table in memory does with the write", () => {
    expect(firstDifference(engine)).toBeUndefined();
  });

  test.each<Write["kind"]>([
    "take",
    "renew",
    "reissue",
    "transfer",
    "vacate",
    "remove",
    "want",
    "draw",
    "check",
    "put-result",
  ])("a %s met many items that let it through, and many that did not", (kind) => {
    const ofKind = engine.filter((_, index) => PAIRS[index]?.write.kind === kind);
    for (const outcome of ["applied", "refused"]) {
      expect(ofKind.filter((result) => result.kind === outcome).length).toBeGreaterThanOrEqual(5);
    }
  });
});

if (IS_FULL) {
  describe(`with seed ${SEED}, a defect of the compiler is found`, () => {
    test.each<readonly [string, (expressions: Expressions) => void]>([
      ["a row that ends just now counts as over", inCondition("#expires < ", "#expires <= ")],
      ["a row with a tick is replaced", inCondition(" AND attribute_not_exists(#tick)", "")],
      [
        "another flight's result is not noticed",
        inCondition(/#result\.#id = :if_resultId AND | AND #result\.#id = :if_resultId/, ""),
      ],
      ["the uuid that was seen is not compared", inCondition("#uuid = :if_seenUuid AND ", "")],
      ["another format is let through", inCondition(/#format = :format AND | AND #format = :format/, "")],
      ["a transfer does not compare the stamp", inTransfer(inCondition(" AND #expires > :if_after", ""))],
      ["the stamp that was seen is not compared", inCondition(" AND #expires = :if_seenExpires AND ", " AND ")],
      [
        "a hold that was seen may have a holder",
        inCondition(" AND attribute_not_exists(#uuid) AND #expires", " AND #expires"),
      ],
      ["a transfer leaves the owner", inTransfer(inUpdate(", #owner = :owner", ""))],
      ["a take leaves the number of permits", inUpdate(", #permits = :permits", "")],
      ["a mark is not removed", inUpdate(/(, #wanted(?! =)|#wanted, )/, "")],
      ["a token begins again from the seed", inUpdate("if_not_exists(#fence, :seed)", ":seed")],
      ["the reply shows no item", (expressions) => delete expressions.ReturnValues],
      ["a statement does not compare the stamp", inStatement(/ AND "expires" < \?/, ' AND "expires" > ?')],
      ["a statement leaves the purge date of a row with a tick", inStatement(' REMOVE "ttl"', "")],
      ["a statement shows no item", inStatement("RETURNING ALL OLD *", "")],
    ])("%s", async (_defect, spoil) => {
      let found: object | undefined;
      const spoiled = PAIRS.filter((pair) => isSpoiled(layout, pair, spoil));
      for (let from = 0; from < spoiled.length && found === undefined; from += CHUNK) {
        const pairs = spoiled.slice(from, from + CHUNK);
        found = firstDifference(await engineResults(client, layout, pairs, spoil), pairs);
      }
      // By what it does, and not by being no expression.
      expect(found).toMatchObject({ found: { kind: expect.stringMatching(/applied|refused/) } });
    });
  });
}

function inCondition(what: string | RegExp, by: string): (expressions: Expressions) => void {
  return (expressions) => {
    expressions.ConditionExpression = expressions.ConditionExpression?.replace(what, by);
    prune(expressions);
  };
}

/** Spoils transfers alone: no other update sets an owner and leaves since when the row is taken. */
function inTransfer(spoil: (expressions: Expressions) => void): (expressions: Expressions) => void {
  return (expressions) => {
    const { UpdateExpression = "" } = expressions;
    if (UpdateExpression.includes("#owner") && !UpdateExpression.includes("#acquired")) spoil(expressions);
  };
}

function inUpdate(what: string | RegExp, by: string): (expressions: Expressions) => void {
  return (expressions) => {
    if (expressions.UpdateExpression === undefined) return;
    expressions.UpdateExpression = expressions.UpdateExpression.replace(what, by);
    prune(expressions);
  };
}

/** Spoils renewals in batches alone. */
function inStatement(what: string | RegExp, by: string): (expressions: Expressions) => void {
  return (expressions) => {
    if (expressions.Statement !== undefined) expressions.Statement = expressions.Statement.replace(what, by);
  };
}

/** DynamoDB refuses words that no expression uses: a defect is to be found by what it does, and not by that. */
function prune(expressions: Expressions): void {
  const { ConditionExpression, UpdateExpression, ExpressionAttributeNames, ExpressionAttributeValues } = expressions;
  const used = new Set(`${ConditionExpression} ${UpdateExpression}`.match(/[#:]\w+/g));
  for (const words of [ExpressionAttributeNames, ExpressionAttributeValues]) {
    for (const word of Object.keys(words ?? {})) if (!used.has(word)) delete words?.[word];
  }
}
