import { execFile } from "node:child_process";
import { expect, test } from "@jest/globals";

const ENGINE_MODULE = new URL("../examples/support/dynamodb-local.js", import.meta.url).href;

test("without Java, DynamoDB Local says in one sentence what to do", async () => {
  const script = `import { startDynamoDbLocal } from ${JSON.stringify(ENGINE_MODULE)};
    await startDynamoDbLocal().catch((error) => console.log(error.message));`;
  const output = await new Promise<string>((resolve) => {
    const env = { ...process.env, PATH: "" };
    execFile(process.execPath, ["--input-type=module", "-e", script], { env }, (_, stdout) => resolve(stdout));
  });
  expect(output).toMatch(/^DynamoDB Local cannot start: no Java was found\. .*Java 17.*DYNAMODB_ENDPOINT.*\n$/);
});
