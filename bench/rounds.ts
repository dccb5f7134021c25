import type { ContenderName } from "./contenders/index.js";
import { median } from "./numbers.js";
import type { Bench } from "./results.js";

/**
 * What the rounds of each contender came to. One that fails is told and left out: a contender that breaks down must not
 * cost the others what was measured of them.
 */
export class Rounds<Round> {
  readonly #say: Bench["say"];
  readonly #done = new Map<ContenderName, Round[]>();
  readonly #failed = new Map<ContenderName, string[]>();

  constructor({ say }: Bench) {
    this.#say = say;
  }

  async run(name: ContenderName, round: () => Promise<Round>): Promise<void> {
    try {
      const came = await round();
      this.#done.set(name, [...this.of(name), came]);
    } catch (error) {
      const [reason = ""] = String(error).split("\n");
      this.#say(`${name} failed: ${error instanceof Error ? error.stack : error}`);
      this.#failed.set(name, [...(this.#failed.get(name) ?? []), reason]);
    }
  }

  of(name: ContenderName): readonly Round[] {
    return this.#done.get(name) ?? [];
  }

  /** The median of each, by name. */
  medians(of: (round: Round) => number): Partial<Record<ContenderName, number>> {
    return this.each((rounds) => median(rounds.map(of)));
  }

  each(of: (rounds: readonly Round[]) => number): Partial<Record<ContenderName, number>> {
    return Object.fromEntries([...this.#done].map(([name, rounds]) => [name, of(rounds)]));
  }

  /** What somebody has to know who reads the figures. */
  get notes(): readonly string[] {
    return [...this.#failed].map(
      ([name, reasons]) =>
        `**${reasons.length} rounds of ${name} failed** and are left out: ${[...new Set(reasons)].join("; ")}`,
    );
  }
}
