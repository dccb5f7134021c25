import { type ExecFileException, execFile } from "node:child_process";
import { expect, test } from "@jest/globals";

const ENGINE_MODULE = new URL("../examples/support/dynamodb-local.js", import.meta.url).href;

test("without Java, DynamoDB Local says in one line what to do, and the program ends", async () => {
  const script = `import { startDynamoDbLocal } from ${JSON.stringify(ENGINE_MODULE)}; await startDynamoDbLocal();`;
  const env = { ...process.env, PATH: "" };
  const [error, output] = await new Promise<[ExecFileException | null, string]>((resolve) => {
    execFile(process.execPath, ["--input-type=module", "-e", script], { env }, (failure, _, stderr) =>
      resolve([failure, stderr]),
    );
  });
  expect(output).toMatch(/^DynamoDB Local cannot start: no Java was found\. .*Java 17.*DYNAMODB_ENDPOINT.*\n$/);
  expect(error?.code).toBe(1);
});
