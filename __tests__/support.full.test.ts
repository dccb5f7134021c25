import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { CreateTableCommand, DynamoDBClient, ListTablesCommand } from "@aws-sdk/client-dynamodb";
import { describe, expect, it } from "@jest/globals";
import { startDynamoDbLocal } from "../examples/support/dynamodb-local.js";
import { testClientConfig } from "./support/endpoint.js";

const ENGINE_MODULE = fileURLToPath(new URL("../examples/support/dynamodb-local.js", import.meta.url));

// An engine elsewhere says that this machine need not have Java.
const describeEngine = process.env.DYNAMODB_ENDPOINT_IS_OURS ? describe : describe.skip;

describeEngine("DynamoDB Local", () => {
  it("with a folder, keeps its tables through a SIGKILL", async () => {
    const dbPath = await mkdtemp(join(tmpdir(), "dynamutex-"));
    try {
      const before = await startDynamoDbLocal({ dbPath });
      const client = new DynamoDBClient({ ...testClientConfig(), endpoint: before.endpoint });
      await client.send(
        new CreateTableCommand({
          TableName: "survivor",
          BillingMode: "PAY_PER_REQUEST",
          AttributeDefinitions: [{ AttributeName: "name", AttributeType: "S" }],
          KeySchema: [{ AttributeName: "name", KeyType: "HASH" }],
        }),
      );
      client.destroy();
      before.kill("SIGKILL");
      await before.stop();
      await using after = await startDynamoDbLocal({ dbPath, port: before.port });
      const again = new DynamoDBClient({ ...testClientConfig(), endpoint: after.endpoint });
      expect((await again.send(new ListTablesCommand({}))).TableNames).toEqual(["survivor"]);
      again.destroy();
    } finally {
      await rm(dbPath, { recursive: true, force: true });
    }
  }, 180_000);

  it("ends with the process that started it, even by SIGKILL", async () => {
    const script = `import { startDynamoDbLocal } from ${JSON.stringify(ENGINE_MODULE)};
      console.log((await startDynamoDbLocal()).pid);
      setInterval(() => {}, 1000);`;
    const parent = spawn(process.execPath, ["--input-type=module", "-e", script], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    const [chunk] = await once(parent.stdout, "data");
    const pid = Number(chunk);
    expect(isRunning(pid)).toBe(true);
    parent.kill("SIGKILL");
    while (isRunning(pid)) await sleep(20);
  });

  it("without Java, says in one sentence what to do", async () => {
    const script = `import { startDynamoDbLocal } from ${JSON.stringify(ENGINE_MODULE)};
      await startDynamoDbLocal().catch((error) => console.log(error.message));`;
    const output = await new Promise<string>((resolve) => {
      const env = { ...process.env, PATH: "" };
      execFile(process.execPath, ["--input-type=module", "-e", script], { env }, (_, stdout) => resolve(stdout));
    });
    expect(output).toMatch(/^DynamoDB Local cannot start: no Java was found\. .*Java 17.*DYNAMODB_ENDPOINT.*\n$/);
  });
});

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
