// Empties the folder a compiler is about to write to: what a deleted source left there would go on being
// packed or tested.
import { rm } from "node:fs/promises";

for (const folder of process.argv.slice(2)) await rm(folder, { recursive: true, force: true });
