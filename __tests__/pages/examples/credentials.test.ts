import { afterEach, beforeEach, expect, test } from "@jest/globals";
import { engineToUse } from "../../../examples/support/engine.js";

const NAMES = [
  "AWS_ACCESS_KEY_ID",
  "AWS_SECRET_ACCESS_KEY",
  "AWS_ENDPOINT_URL_DYNAMODB",
  "DYNAMODB_ENDPOINT",
  "AWS_REGION",
];
let before: NodeJS.ProcessEnv;

beforeEach(() => {
  before = { ...process.env };
  for (const name of NAMES) delete process.env[name];
});
afterEach(() => {
  process.env = before;
});

const credentials = () => [process.env.AWS_ACCESS_KEY_ID, process.env.AWS_SECRET_ACCESS_KEY];

test("the examples make credentials up for an engine on this machine", async () => {
  process.env.DYNAMODB_ENDPOINT = "http://127.0.0.1:8000";
  await engineToUse();
  expect(credentials()).toEqual(["demo", "demo"]);
});

test("they make none up where the endpoint may be AWS, whose profile or role they would shadow", async () => {
  process.env.DYNAMODB_ENDPOINT = "https://dynamodb.eu-central-1.amazonaws.com";
  await engineToUse();
  expect(credentials()).toEqual([undefined, undefined]);
});

test("they leave those of the environment as they are", async () => {
  Object.assign(process.env, { DYNAMODB_ENDPOINT: "http://127.0.0.1:8000", AWS_ACCESS_KEY_ID: "own" });
  await engineToUse();
  expect(credentials()).toEqual(["own", undefined]);
});
