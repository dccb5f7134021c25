import { expect, test } from "@jest/globals";
import { explore } from "./explore.js";
import { dynamutex } from "./protocol.js";

test("the protocol keeps its promises in 20 schedules of faults on virtual time", async () => {
  const { coverage } = await explore(dynamutex, { seed: 1 }, 20);
  expect(coverage.of("locks taken")).toBeGreaterThan(30);
});
