import { spawnSync } from "node:child_process";

/** What can be run, and what each says. README.md says more. */
const PROOFS = {
  simulation: ["simulation/main", "the library under random faults, on virtual time"],
  profile: ["simulation/profile", "what the simulator's own code costs"],
  model: ["model/main", "every interleaving of two or three claimants"],
  defects: ["simulation/mutants/main", "whether the tests find seeded defects"],
  chaos: ["chaos/main", "real processes on DynamoDB Local, with everything around them broken"],
  work: ["work/main", "how much gets done, with how many requests"],
  load: ["load/main", "many locks of one new process on a real engine"],
  trace: ["trace/main", "which functions of lib/ run in lock(), a renewal and unlock()"],
} as const;

type Proof = keyof typeof PROOFS;

/** One command line, and what its environment has in addition. */
interface Run {
  readonly words: readonly [Proof, ...string[]];
  readonly env?: Readonly<Record<string, string>>;
}

/**
 * Several in a row. Those of a night draw seeds of their own, so the next night plays what this one has not. What stands before a merge
 * has fixed ones: it fails for the change and not for the dice.
 */
const ROUNDS: Readonly<Record<string, { readonly about: string; readonly runs: readonly Run[] }>> = {
  share: {
    about: "a few minutes of what finds most, for .ci/run",
    runs: [
      { words: ["simulation"], env: { SIM_RUNS: "300", SIM_SEED: "2" } },
      { words: ["defects"], env: { SIM_RUNS: "200", SIM_DEFECT: "nobody checks the deadline" } },
    ],
  },
  nightly: {
    about: "all of it, for a night",
    runs: [
      { words: ["simulation"], env: { SIM_RUNS: "100000" } },
      { words: ["work"] },
      { words: ["chaos", "--minutes", "60"] },
      { words: ["model"] },
      { words: ["load"] },
      { words: ["defects"], env: { SIM_RUNS: "200" } },
    ],
  },
};

// The SDK tells every process on Node 20 that it should be a newer one.
process.env.AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED = "true";

const [name = ""] = process.argv.splice(2, 1);
if (name in ROUNDS) playRound(name);
else if (isProof(name)) await play(name);
else help();

function isProof(word: string): word is Proof {
  return word in PROOFS;
}

async function play(proof: Proof): Promise<void> {
  // Stacks show the TypeScript. The profile does without: source maps take time.
  process.setSourceMapsEnabled(proof !== "profile");
  const [program] = PROOFS[proof];
  await import(`./${program}.js`);
}

/** Plays all of a round, also after a failure: each finding is one to look at. */
function playRound(round: string): void {
  for (const { words, env } of ROUNDS[round]?.runs ?? []) {
    const settings = Object.entries(env ?? {}).map(([key, value]) => `${key}=${value} `);
    console.log(`== ${settings.join("")}npm run proof -- ${words.join(" ")}`);
    const { status } = spawnSync(process.execPath, [...process.execArgv, import.meta.filename, ...words], {
      stdio: "inherit",
      env: { ...process.env, ...env },
    });
    if (status !== 0) process.exitCode = 1;
  }
}

function help(): void {
  console.error("npm run proof -- NAME, where NAME is one of:");
  for (const [proof, [, about]] of Object.entries(PROOFS)) console.error(`  ${proof}: ${about}`);
  for (const [round, { about }] of Object.entries(ROUNDS)) console.error(`  ${round}: ${about}`);
  process.exitCode = 1;
}
