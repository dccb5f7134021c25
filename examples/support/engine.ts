/// <reference lib="esnext.disposable" preserve="true" />
import { startDynamoDbLocal } from "./dynamodb-local.js";

export interface Engine extends AsyncDisposable {
  readonly endpoint: string;
}

/**
 * A DynamoDB Local of our own, or the engine that DYNAMODB_ENDPOINT names. The environment then leads the AWS SDK
 * there, in this process and in those that it starts.
 */
export async function engineToUse(): Promise<Engine> {
  const given = process.env.DYNAMODB_ENDPOINT;
  const engine = given ? { endpoint: given, [Symbol.asyncDispose]: async () => undefined } : await startDynamoDbLocal();
  process.env.AWS_ENDPOINT_URL_DYNAMODB = engine.endpoint;
  process.env.AWS_REGION ??= "us-east-1";
  // Credentials of the environment win over those of a profile or a role: no made-up ones where a table may be on AWS.
  if (/^http:/.test(engine.endpoint) && process.env.AWS_ACCESS_KEY_ID === undefined) {
    Object.assign(process.env, { AWS_ACCESS_KEY_ID: "demo", AWS_SECRET_ACCESS_KEY: "demo" });
  }
  // On Node 20 every process would print the AWS SDK's warning, in the middle of what is shown.
  process.env.AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED ??= "true";
  return engine;
}
