import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { afterEach, beforeEach, jest } from "@jest/globals";
import type { Diagnostics } from "../../lib/index.js";

/** All that is told on this channel until the test ends; `act` hears it at once. */
export function hear<Name extends keyof Diagnostics>(
  channel: Name,
  act: (message: Diagnostics[Name]) => void = () => undefined,
): readonly Diagnostics[Name][] {
  const heard: Diagnostics[Name][] = [];
  const listener = (message: unknown): void => {
    // Channels are the process's, and Jest runs file after file in it, each in a realm of its own: what an earlier file has left may
    // still fail to be released.
    if (!(message instanceof Object)) return;
    heard.push(message as Diagnostics[Name]);
    act(message as Diagnostics[Name]);
  };
  subscribe(channel, listener);
  listening.push(() => unsubscribe(channel, listener));
  return heard;
}

const listening: (() => void)[] = [];

afterEach(() => {
  for (const stop of listening.splice(0)) stop();
});

/** What the library warns of in each test of a file; nothing of it is printed. */
export function useWarnings(): readonly string[] {
  const warnings: string[] = [];
  beforeEach(() => {
    jest.spyOn(process, "emitWarning").mockImplementation((...[warning, how]: unknown[]) => {
      const { type } = typeof how === "string" ? { type: how } : (how as { readonly type?: string });
      if (type === "DynamutexWarning") warnings.push(`${warning}`);
    });
  });
  afterEach(() => {
    jest.restoreAllMocks();
    warnings.length = 0;
  });
  return warnings;
}
