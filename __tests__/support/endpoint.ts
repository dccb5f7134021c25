/** The address of the engine that this run tests against. */
export function testEndpoint(): string {
  const endpoint = process.env.DYNAMODB_ENDPOINT;
  if (!endpoint) throw new Error("DYNAMODB_ENDPOINT is not set: start the tests with `npm test`");
  return endpoint;
}

/** What a client for the engine needs. This file needs no jest: child processes of tests may import it. */
export function testClientConfig() {
  return {
    endpoint: testEndpoint(),
    region: "us-east-1",
    credentials: { accessKeyId: "test", secretAccessKey: "test" },
  };
}

/** The environment of a process whose clients reach an engine without options of their own. */
export function clientEnv(endpoint: string = testEndpoint()) {
  return {
    AWS_ENDPOINT_URL_DYNAMODB: endpoint,
    AWS_REGION: "us-east-1",
    AWS_ACCESS_KEY_ID: "test",
    AWS_SECRET_ACCESS_KEY: "test",
  };
}
