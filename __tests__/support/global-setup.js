import { join } from "node:path";
import { transpileAll } from "../../.ci/transpile.js";

let engine;

/**
 * What tests start as processes is transpiled, and one DynamoDB Local starts for the whole run. A DYNAMODB_ENDPOINT that is set
 * already is used as it is.
 */
async function globalSetup() {
  await transpileAll();
  if (process.env.DYNAMODB_ENDPOINT) return;
  const { startDynamoDbLocal } = await import("../../.jest/examples/support/dynamodb-local.js");
  engine = await startDynamoDbLocal({ javaOption: `@${join(import.meta.dirname, "java-options")}` });
  process.env.DYNAMODB_ENDPOINT = engine.endpoint;
  process.env.DYNAMODB_ENDPOINT_IS_OURS = "yes";
}

/** Ends the engine that {@link globalSetup} started, if it did. */
export async function stopEngine() {
  await engine?.stop();
}

export default globalSetup;
