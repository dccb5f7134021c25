import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";

/**
 * The JavaScript of a program of ours, for what runs as a process or a thread of its own: Jest transforms nothing there. It is
 * made when the tests start, or by `npm run build:tests`.
 *
 * @param program a program's URL, as if its JavaScript lay beside the source: `new URL("./hosts/counter.js", import.meta.url)`.
 */
export function compiled(program: URL): string {
  const path = relative(process.cwd(), fileURLToPath(program));
  return join(process.cwd(), path.startsWith(".jest") ? path : join(".jest", path));
}
