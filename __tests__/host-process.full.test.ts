import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "@jest/globals";
import type { EchoConfig } from "./hosts/echo.js";
import type { ParentConfig } from "./hosts/parent.js";
import { type Host, processState, startHost } from "./support/host-process.js";

function startEcho(config: EchoConfig, env: Record<string, string> = {}): Host {
  return startHost(new URL("./hosts/echo.js", import.meta.url), { config, env });
}

test("a message that no longer can come fails with what the host wrote to stderr", async () => {
  await using host = startEcho({ say: ["one"], ending: "throw" });
  await expect(host.message(({ text }) => text === "two")).rejects.toThrow("the host has failed");
  expect((await host.exit).code).toBe(1);
  await expect(host.next()).rejects.toThrow("exited (1)");
});

test("a suspended host does nothing until it is resumed", async () => {
  await using host = startEcho({ say: [], ending: "tick" });
  await host.message(({ count }) => count === 3);
  await host.suspend();
  const suspended = process.hrtime.bigint();
  // Long enough for some ticks, if it could.
  await sleep(50);
  const resumed = process.hrtime.bigint();
  host.resume();
  // One clock for all processes of a machine.
  await host.message(({ at }) => BigInt(String(at)) > resumed);
  const ticks = host.messages.map(({ at }) => BigInt(String(at)));
  expect(ticks.filter((at) => at > suspended && at < resumed)).toEqual([]);
});

test.each<ParentConfig>([
  { inner: "tick", suspended: false, leave: true },
  { inner: "tick", suspended: false, leave: false },
  { inner: "tick", suspended: true, leave: true },
  { inner: "tick", suspended: true, leave: false },
  { inner: "block", suspended: false, leave: false },
])("no host outlives its parent: %j", async (config) => {
  await using parent = startHost(new URL("./hosts/parent.js", import.meta.url), { config });
  const { pid } = await parent.message(({ kind }) => kind === "started");
  if (!config.leave) parent.kill("SIGKILL");
  await parent.exit;
  await gone(Number(pid));
});

/** Nobody waits for the child of a child, so its end can only be looked for; the test's time limit bounds that. */
async function gone(pid: number): Promise<void> {
  while (processState(pid) !== "gone") await sleep(5);
}
