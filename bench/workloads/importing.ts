import { execFileSync } from "node:child_process";
import { median } from "../numbers.js";
import { ROOT } from "../record.js";
import type { Workload } from "../results.js";

/** Prints what the import alone took, in ms. */
const PROGRAM = (name: string): string =>
  `const from = performance.now(); await import(${JSON.stringify(name)}); console.log(performance.now() - from);`;

export const importing: Workload = {
  name: "importing",
  title: "import of the package, in a fresh process",
  async run(bench) {
    const times: Record<"client" | "dynamutex", number[]> = { client: [], dynamutex: [] };
    for (let round = 0; round < (bench.quick ? 5 : 25); round++) {
      bench.say(`round ${round + 1}`);
      times.client.push(importMs("@aws-sdk/client-dynamodb"));
      times.dynamutex.push(importMs("dynamutex"));
    }
    const ratio = median(times.dynamutex.map((ms, index) => ms / (times.client[index] ?? Number.NaN)));
    const floor = median(times.client);
    return {
      lines: [
        { title: "time", unit: "ms", values: { raw: floor, dynamutex: median(times.dynamutex) } },
        { title: "against the DynamoDB client alone", unit: "×", values: { raw: 1, dynamutex: ratio }, goal: 1.3 },
        { title: "installed, without the AWS SDK", unit: "kB", values: { dynamutex: installedKb() } },
      ],
      notes: [
        "The floor is the import of the DynamoDB client alone, which dynamutex imports too. Medians of processes in turn. " +
          "Installed is the package as it is packed.",
      ],
    };
  },
};

function importMs(name: string): number {
  return Number(
    execFileSync(process.execPath, ["--input-type=module", "--eval", PROGRAM(name)], { cwd: ROOT, encoding: "utf8" }),
  );
}

/** What `npm install dynamutex` adds where the SDK is installed already. */
function installedKb(): number {
  const args = ["pack", "--dry-run", "--json", "--ignore-scripts"]; // without these, it would ask for a release
  const [packed] = JSON.parse(execFileSync("npm", args, { cwd: ROOT, encoding: "utf8" }));
  return packed.unpackedSize / 1_000;
}
