import { clientEnv } from "./endpoint.js";
import { type Host, type HostMessage, startHost } from "./host-process.js";

/**
 * Starts a compiled program whose `new LockTable({ tableName })` makes its own client, as it does for everybody, and
 * reaches the table through this endpoint. A promise that is rejected with nobody to handle it ends the program.
 */
export function startLockHost<Message extends HostMessage = HostMessage>(
  program: URL,
  { endpoint, config }: { readonly endpoint: string; readonly config: unknown },
): Host<Message> {
  return startHost<Message>(program, {
    config,
    env: clientEnv(endpoint),
    flags: ["--unhandled-rejections=strict"],
  });
}
