interface TestClientConfig {
  readonly endpoint: string;
  readonly region: string;
  readonly credentials: { readonly accessKeyId: string; readonly secretAccessKey: string };
}

/** The address of the engine that this run tests against. */
export function testEndpoint(): string {
  const endpoint = process.env.DYNAMODB_ENDPOINT;
  if (!endpoint) throw new Error("DYNAMODB_ENDPOINT is not set: start the tests with `npm test`");
  return endpoint;
}

const ACCOUNT = { region: "us-east-1", credentials: { accessKeyId: "test", secretAccessKey: "test" } };

/** What a program that makes its own client finds in its environment. */
export function clientEnv(endpoint: string): Readonly<Record<string, string>> {
  const { region, credentials } = ACCOUNT;
  return {
    AWS_ENDPOINT_URL_DYNAMODB: endpoint,
    AWS_REGION: region,
    AWS_ACCESS_KEY_ID: credentials.accessKeyId,
    AWS_SECRET_ACCESS_KEY: credentials.secretAccessKey,
  };
}

/** What a client for the engine needs. This file needs no jest: child processes of tests may import it. */
export function testClientConfig(): TestClientConfig {
  return { endpoint: testEndpoint(), ...ACCOUNT };
}
