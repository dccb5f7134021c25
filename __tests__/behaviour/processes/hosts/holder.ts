import { setTimeout as sleep } from "node:timers/promises";
import { LockTable } from "../../../../lib/index.js";
import { hostConfig, report } from "../../../support/host-process.js";
import { KINDS, type Kind, LEASE } from "../kinds.js";

export interface HolderConfig {
  readonly tableName: string;
  readonly kind: Kind;
}

const { tableName, kind } = hostConfig<HolderConfig>();
const [take] = KINDS[kind];
await take(new LockTable({ tableName, owner: "holder", ...LEASE }));
report({ kind: "held" });
await sleep(2 ** 30);
