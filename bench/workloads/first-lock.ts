import { execFileSync } from "node:child_process";
import type { LockerOptions } from "../contenders/locker.js";
import { LOCAL } from "../contenders/locker.js";
import { median } from "../numbers.js";
import { ROOT } from "../record.js";
import type { Workload } from "../results.js";

/** Whole programs, the client of each from the environment. They print the CPU time of their process, in ms. */
const AT_EXIT = `
process.on("exit", () => {
  const { user, system } = process.cpuUsage();
  console.log((user + system) / 1_000);
});`;

export const PROGRAMS = {
  raw: `
import { DeleteItemCommand, DynamoDBClient, PutItemCommand } from "@aws-sdk/client-dynamodb";
const TableName = process.env.TABLE_NAME;
const client = new DynamoDBClient();
const send = (command) => client.send(command, { abortSignal: new AbortController().signal });
const [name, sort, uuid] = [{ S: "raw" }, { S: "lock" }, { S: crypto.randomUUID() }];
await send(new PutItemCommand({
  TableName,
  Item: { name, sort, uuid, expires: { N: String(Date.now() + 30_000) } },
  ConditionExpression: "attribute_not_exists(#name) OR #expires < :now",
  ExpressionAttributeNames: { "#name": "name", "#expires": "expires" },
  ExpressionAttributeValues: { ":now": { N: String(Date.now()) } },
}));
await send(new DeleteItemCommand({
  TableName,
  Key: { name, sort },
  ConditionExpression: "#uuid = :uuid",
  ExpressionAttributeNames: { "#uuid": "uuid" },
  ExpressionAttributeValues: { ":uuid": uuid },
}));
client.destroy();
${AT_EXIT}`,
  dynamutex: `
import { LockTable } from "dynamutex";
const locks = new LockTable({ tableName: process.env.TABLE_NAME });
const lock = await locks.mutex("dynamutex").lock();
await lock.unlock();
await locks.close();
${AT_EXIT}`,
} as const;

export const firstLock: Workload = {
  name: "first-lock",
  title: "A fresh process that imports, locks once, unlocks and exits",
  async run(bench) {
    const options = await bench.ground.options("dynamutex", 30_000, undefined);
    const cpuMs: Record<keyof typeof PROGRAMS, number[]> = { raw: [], dynamutex: [] };
    for (let round = 0; round < (bench.quick ? 5 : 40); round++) {
      bench.say(`round ${round + 1}`);
      // Whoever comes second finds other caches: so they change places.
      const order = round % 2 === 0 ? (["raw", "dynamutex"] as const) : (["dynamutex", "raw"] as const);
      for (const name of order) cpuMs[name].push(cpuMsOf(PROGRAMS[name], options));
    }
    const ratio = median(cpuMs.dynamutex.map((ms, index) => ms / (cpuMs.raw[index] ?? Number.NaN)));
    const values = { raw: median(cpuMs.raw), dynamutex: median(cpuMs.dynamutex) };
    return {
      lines: [
        { title: "CPU against the floor", unit: "×", values: { raw: 1, dynamutex: ratio }, goal: 1.25 },
        { title: "CPU", unit: "ms", values },
      ],
      notes: [
        "User and system time of whole processes in turn, Node's own start included; shown is the median of the ratios of " +
          "neighbours. The floor is a `PutItem` and a `DeleteItem` on a client as the SDK comes; the first lock of a process " +
          "reads the row before, to learn the table's time.",
      ],
    };
  },
};

/** @param checkout whose `dynamutex` the program imports. */
export function cpuMsOf(program: string, { endpoint, tableName }: LockerOptions, checkout = ROOT): number {
  const env = {
    PATH: process.env.PATH,
    TABLE_NAME: tableName,
    AWS_ENDPOINT_URL_DYNAMODB: endpoint,
    AWS_REGION: LOCAL.region,
    AWS_ACCESS_KEY_ID: LOCAL.credentials.accessKeyId,
    AWS_SECRET_ACCESS_KEY: LOCAL.credentials.secretAccessKey,
    AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED: "true",
  };
  const arguments_ = ["--input-type=module", "--eval", program];
  return Number(execFileSync(process.execPath, arguments_, { cwd: checkout, env, encoding: "utf8" }));
}
