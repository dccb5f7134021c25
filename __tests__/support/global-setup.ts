import { type DynamoDbLocal, startDynamoDbLocal } from "../../examples/support/dynamodb-local.js";

let engine: DynamoDbLocal | undefined;

/** One DynamoDB Local for the whole run. A DYNAMODB_ENDPOINT that is set already is used as it is. */
async function globalSetup(): Promise<void> {
  // The SDK tells every process on Node 20 that it should be a newer one.
  process.env.AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED = "true";
  if (process.env.DYNAMODB_ENDPOINT) return;
  engine = await startDynamoDbLocal();
  process.env.DYNAMODB_ENDPOINT = engine.endpoint;
  process.env.DYNAMODB_ENDPOINT_IS_OURS = "yes";
}

/** Ends the engine that {@link globalSetup} started, if it did. */
export async function stopEngine(): Promise<void> {
  await engine?.stop();
}

export default globalSetup;
