import type { Workload } from "../results.js";
import { channels } from "./channels.js";
import { fair } from "./fair.js";
import { features } from "./features.js";
import { firstLock } from "./first-lock.js";
import { fourProcesses } from "./four-processes.js";
import { held } from "./held.js";
import { importing } from "./importing.js";
import { kept } from "./kept.js";
import { oneProcess } from "./one-process.js";
import { permits } from "./permits.js";
import { polling } from "./polling.js";
import { takeover } from "./takeover.js";
import { uncontended } from "./uncontended.js";
import { verrou } from "./verrou.js";
import { waiters } from "./waiters.js";
import { waiting } from "./waiting.js";

/** In the order in which they run and stand in the table. */
export const WORKLOADS: readonly Workload[] = [
  uncontended,
  waiting,
  oneProcess,
  fourProcesses,
  kept,
  takeover,
  importing,
  firstLock,
  features,
  channels,
  waiters,
  fair,
  permits,
  held,
  polling,
  verrou,
];
