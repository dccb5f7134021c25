import { type Host, hostConfig, report, startHost } from "../support/host-process.js";
import type { EchoConfig } from "./echo.js";

export interface ParentConfig {
  readonly inner: "tick" | "block";
  readonly suspended: boolean;
  /** Whether it ends by itself. */
  readonly leave: boolean;
}

/** A host with a host of its own, which it leaves behind. */
const { inner, suspended, leave } = hostConfig<ParentConfig>();
const config: EchoConfig = { say: ["alive"], ending: inner };
const host: Host = startHost(new URL("./echo.js", import.meta.url), { config });
await host.message(({ kind }) => kind === "said");
if (suspended) await host.suspend();
report({ kind: "started", pid: host.pid });
if (leave) process.exit();
