import { subscribe } from "node:diagnostics_channel";
import { setImmediate as turn } from "node:timers/promises";
import { publish } from "../../../../lib/diagnostics.js";
import type { Diagnostics } from "../../../../lib/index.js";
import { hostConfig, report } from "../../../support/host-process.js";

export interface LateListenerConfig {
  readonly channels: readonly (keyof Diagnostics)[];
}

// Of each channel an event without a listener, a collection, a subscription before the finalizers run, and another event.
const collect = globalThis.gc as () => void;
const { channels } = hostConfig<LateListenerConfig>();
const deaf = new Set<string>(channels);
for (const name of channels) publish(name, {} as never);
await turn();
collect();
for (const name of channels) subscribe(name, () => deaf.delete(name));
// In which the finalizers run.
for (let turns = 0; turns < 10; turns += 1) await turn();
for (const name of channels) publish(name, {} as never);
report({ kind: "deaf", channels: [...deaf] });
