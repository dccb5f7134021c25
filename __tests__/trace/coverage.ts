import { type Profiler, Session } from "node:inspector/promises";

/** What is traced. */
export const OPERATIONS = {
  lock: "a warm, uncontended lock()",
  renewal: "a renewal",
  unlock: "unlock()",
} as const;

/** The files whose functions ran, in the order of their names. */
export interface Trace {
  readonly operation: string;
  readonly files: readonly TracedFile[];
}

export interface TracedFile {
  readonly file: string;
  readonly functions: readonly string[];
}

const IN_LIB = /\/lib\/((?:[\w-]+\/)*[\w-]+\.js)$/;

/** Which functions of lib/ ran since it was asked last. */
export class Coverage {
  readonly #session: Session;

  private constructor(session: Session) {
    this.#session = session;
  }

  static async start(): Promise<Coverage> {
    const session = new Session();
    session.connect();
    await session.post("Profiler.enable");
    await session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: false });
    const coverage = new Coverage(session);
    await coverage.take();
    return coverage;
  }

  /** @param counts whether a function of this name counts: default every one. */
  async take(counts: (name: string) => boolean = () => true): Promise<readonly TracedFile[]> {
    const { result } = (await this.#session.post("Profiler.takePreciseCoverage")) as {
      readonly result: readonly Profiler.ScriptCoverage[];
    };
    return result
      .flatMap(({ url, functions }) => {
        const file = IN_LIB.exec(url)?.[1];
        if (file === undefined || url.includes("node_modules")) return [];
        const ran = functions
          .filter(({ ranges }) => (ranges[0]?.count ?? 0) > 0)
          .map(({ functionName }) => functionName);
        const named = [...new Set(ran.map((name) => name || "(a function without a name)"))].filter(counts);
        return named.length === 0 ? [] : [{ file: file.replace(/\.js$/, ".ts"), functions: named }];
      })
      .sort((one, other) => (one.file < other.file ? -1 : 1));
  }
}
