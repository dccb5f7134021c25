import { explore, Failure } from "../explore.js";
import { Violation } from "../invariants.js";
import { dynamutex } from "../protocol.js";
import type { Finding } from "./mutant.js";

/** Runs in a mutant's folder: `hunt.js SEED RUNS` says as JSON which invariant failed and after how many schedules. */
const [seed = "1", runs = "1000"] = process.argv.slice(2);

// What the mutant does outside of any call is found as well.
process.on("unhandledRejection", (error) => {
  tell({ invariant: `no unhandled rejection: ${error}`, runs: 0 });
  process.exit(0);
});

explore(dynamutex, { seed: Number(seed) }, Number(runs), { shrink: false }).then(
  (exploration) => tell({ invariant: undefined, runs: exploration.runs }),
  (failure: unknown) => {
    if (!(failure instanceof Failure)) throw failure;
    const { cause } = failure;
    tell({ invariant: cause instanceof Violation ? cause.invariant : String(cause), runs: failure.runs });
  },
);

function tell(finding: Finding): void {
  console.log(JSON.stringify(finding));
}
