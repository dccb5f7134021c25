/**
 * `dynamutex rehearse` on an engine of its own: three processes contend for a lock, one is killed and one is frozen while they hold it.
 * On your own table it is `npx dynamutex rehearse --table NAME`, with your own credentials.
 */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { engineToUse } from "../support/engine.js";

const TABLE_NAME = process.env.TABLE_NAME ?? "dynamutex-demo";
const COMMAND = fileURLToPath(new URL("./dist/cli/main.js", import.meta.resolve("dynamutex/package.json")));

await using _engine = await engineToUse();
process.exitCode = (await dynamutex("create-table")) || (await dynamutex("rehearse"));

async function dynamutex(command: string): Promise<number> {
  const [code] = await once(
    spawn(process.execPath, [COMMAND, command, "--table", TABLE_NAME], { stdio: "inherit" }),
    "exit",
  );
  return code ?? 1;
}
