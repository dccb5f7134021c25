import { hostConfig, report } from "../support/host-process.js";

/** What the tests of the host helper want of a host. */
export interface EchoConfig {
  readonly say: readonly string[];
  /** How it ends: by itself, by an error, by its parent, or never. */
  readonly ending: "return" | "throw" | "tick" | "block";
}

const { say, ending } = hostConfig<EchoConfig>();
for (const text of say) report({ kind: "said", text, greeting: process.env.GREETING });
if (ending === "throw") throw new Error("the host has failed");
if (ending === "tick") {
  let count = 0;
  setInterval(() => report({ kind: "tick", count: count++, at: String(process.hrtime.bigint()) }), 5);
}
if (ending === "block") for (;;);
