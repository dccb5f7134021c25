import { LockTable } from "../../../lib/index.js";
import { hostConfig, report } from "../../support/host-process.js";

export interface ObserverConfig {
  readonly tableName: string;
  readonly name: string;
  readonly pollMs: number;
}

/** Who leads, as it is seen; no uuid for nobody. */
export interface ObserverMessage {
  readonly kind: "seen";
  readonly uuid?: string | undefined;
  readonly [field: string]: unknown;
}

const { tableName, name, pollMs } = hostConfig<ObserverConfig>();
await using locks = new LockTable({ tableName });
for await (const leader of locks.mutex(name).observe({ pollMs })) {
  report({ kind: "seen", uuid: leader?.uuid, owner: leader?.owner } satisfies ObserverMessage);
}
