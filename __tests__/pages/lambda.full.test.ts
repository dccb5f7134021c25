import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { LockTable } from "dynamutex";
import { type PagePrograms, pagePrograms } from "../support/page-programs.js";
import { pageAt } from "../support/pages.js";
import { testClient } from "../support/table.js";

/** The reader's own work. */
const SHIPPING = `
import { once } from "node:events";

export async function ship(order: string, signal?: AbortSignal): Promise<string> {
  if (order.startsWith("no")) throw new Error("no such order");
  if (order.startsWith("slow") && signal !== undefined) {
    await once(signal, "abort");
    throw signal.reason;
  }
  return "shipped " + order;
}
`;

const INVOICES = `
export async function sendInvoices(signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  console.log("sends");
}
`;

/**
 * What Lambda does: it loads the handler, calls it, and kills the process that takes longer than it may. The first invocation has all
 * the time that it needs to load the SDK and to connect.
 */
const RUNTIME = `
const { HANDLER = "", ORDER = "" } = process.env;
const { handler } = await import(HANDLER);

async function invoke(order: string, timeoutMs: number): Promise<string> {
  const endsAt = Date.now() + timeoutMs;
  const context = { awsRequestId: "r-1", getRemainingTimeInMillis: () => endsAt - Date.now() };
  const timeout = setTimeout(() => {
    console.log("killed by the timeout");
    process.exit(1);
  }, timeoutMs);
  try {
    return JSON.stringify(await handler({ order, time: "2026-11-28T06:00:00Z" }, context));
  } catch (error) {
    return "fails: " + ((error as { code?: string }).code ?? (error as Error).message);
  } finally {
    clearTimeout(timeout);
  }
}

await invoke("first-" + ORDER, 60_000);
console.log(await invoke(ORDER, 3_000)); // Lambda's default
process.exit();
`;

/** What has been shipped is written down at the end, as where a service has its own table. The orders of the test are few. */
const ORDERS = `
const shipped = new Set<string>();
export async function wasShipped(order: string): Promise<boolean> {
  return shipped.has(order);
}
export async function ship(order: string, signal: AbortSignal): Promise<void> {
  if (order.startsWith("no")) throw new Error("no such order");
  console.log("ships " + order);
  await new Promise((done) => setTimeout(done, 50));
  signal.throwIfAborted();
  shipped.add(order);
}
`;

/** What SQS does: two invocations get the same message, and a third one gets it later. */
const QUEUE = `
import { handler } from "./queue.js";

const message = (messageId: string, order: string) => ({ messageId, body: JSON.stringify({ order }) });
const batch = { Records: [message("m-1", "17"), message("m-2", "no-18")] };
const context = { getRemainingTimeInMillis: () => 11_000 };
const answers = [
  ...(await Promise.all([handler(batch, context), handler(batch, context)])),
  await handler({ Records: [message("m-1", "17")] }, context),
];
console.log(JSON.stringify(answers.map(({ batchItemFailures }) => batchItemFailures.map(({ itemIdentifier }) => itemIdentifier))));
process.exit();
`;

let programs: PagePrograms;
let locks: LockTable;

beforeAll(async () => {
  const given = {
    "shipping.ts": SHIPPING,
    "invoices.ts": INVOICES,
    "runtime.ts": RUNTIME,
    "orders.ts": ORDERS,
    "queue-runtime.ts": QUEUE,
  };
  programs = await pagePrograms({ pages: ["docs/guides/lambda.md"], given });
  locks = new LockTable({ tableName: programs.tableName, client: testClient() });
});

afterAll(async () => {
  await locks.close();
  await programs[Symbol.asyncDispose]();
});

async function invoke(file: string, order: string): Promise<string> {
  await using program = programs.start("runtime.ts", {
    HANDLER: `./${file.replace(".ts", ".js")}`,
    ORDER: order,
  });
  await program.exit;
  return program.lines.join("\n");
}

describe.each([
  {
    file: "handler.ts",
    shipped: (order: string) => ({ statusCode: 200, body: `shipped ${order}` }),
    busy: '{"statusCode":409,"body":"busy"}',
  },
  { file: "middy.ts", shipped: (order: string) => `shipped ${order}`, busy: "fails: LOCK_TIMEOUT" },
])("$file of docs/guides/lambda.md, with Lambda's default timeout,", ({ file, shipped, busy }) => {
  const order = (name: string) => `${name}-${file}`;
  const isFree = async (name: string) => (await locks.mutex(`order#${order(name)}`).inspect()) === null;

  test("trap 53: does its work under the lock, and releases it", async () => {
    expect(await invoke(file, order("17"))).toBe(JSON.stringify(shipped(order("17"))));
    expect(await isFree("17")).toBe(true);
  });

  test("trap 53: says in time that another invocation has the lock", async () => {
    await using held = await locks.mutex(`order#${order("18")}`).lock();
    expect(await invoke(file, order("18"))).toBe(busy);
    await held.unlock();
  });

  test("fails when its work fails, and releases the lock", async () => {
    expect(await invoke(file, order("no"))).toBe("fails: no such order");
    expect(await isFree("no")).toBe(true);
  });
});

test("trap 53: the handler ends work that would outlast the invocation, and releases the lock", async () => {
  expect(await invoke("handler.ts", "slow")).toBe("fails: 23"); // the code of a TimeoutError
  expect(await locks.mutex("order#slow").inspect()).toBeNull();
});

test("trap 53: an event of a schedule that comes twice is worked on once", async () => {
  expect(await invoke("scheduled.ts", "none")).toBe('sends\n"not here: done"');
});

test("the SDK's version is where the page looks for it", async () => {
  await using program = programs.start("sdk-version.ts");
  await program.exit;
  expect(program.lines).toEqual([expect.stringMatching(/^3\.\d+\.\d+$/)]);
});

test("the sizes are those of docs/reference/packaging.md", () => {
  const told = /(\d+) kB with the AWS SDK, and (\d+) kB without it/
    .exec(pageAt("docs/guides/lambda.md").text)
    ?.slice(1);
  const packaging = pageAt("docs/reference/packaging.md").text;
  const measured = ["with the SDK, ESM and CommonJS", "with the SDK outside, ESM"].map((which) =>
    Math.round(Number(packaging.split(`a minified handler ${which} | `)[1]?.split(" kB")[0])),
  );
  expect(told?.map(Number)).toEqual(measured);
});

test("trap 53: a message of SQS that comes three times ships its order once, and one that fails comes again alone", async () => {
  await using program = programs.start("queue-runtime.ts");
  const { code } = await program.exit;
  const printed = program.lines.filter((line) => line.startsWith("ships") || line.startsWith("["));
  expect({ code, printed }).toEqual({ code: 0, printed: ["ships 17", '[["m-2"],["m-2"],[]]'] });
});
