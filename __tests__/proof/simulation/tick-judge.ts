import { LOCK_SORT } from "../../../lib/protocol/addresses.js";
import type { Refusal } from "../../../lib/taking/claim.js";
import type { Change } from "./network.js";
import { entryOf } from "./watcher.js";

/** A tick of a lock, as its row and its runs show it. */
interface Tick {
  /** Whether it may run again where its run fails, rather than once. */
  isDue: boolean;
  /** Whether the row has shown that no run of it may begin any more. */
  isDone: boolean;
  /** The most attempts that the row has shown. */
  attempts: number;
  /** Its runs that have begun, the last one at the end. */
  readonly runs: { readonly uuid: string; readonly attempt: number }[];
  /** Those of them that succeeded. */
  readonly succeeded: Set<string>;
  /** Whose success the row has shown. */
  recorded: string | undefined;
}

/** A tick that a call asks for. */
export interface AskedTick {
  readonly name: string;
  readonly tick: number;
}

/** A run of a tick that is due until one succeeds. */
export interface TickRun extends AskedTick {
  readonly uuid: string;
  readonly attempt: number;
}

/** Sees to it that a tick runs until a success of it is recorded, and not again after that. */
export class TickJudge {
  readonly #ticks = new Map<string, Tick>();
  /** The last tick of each name that a section has got. */
  readonly #last = new Map<string, number>();
  /** The last tick that the row of each name has shown. */
  readonly #shown = new Map<string, number>();

  /** A section has got a tick. @returns what is wrong with that. */
  granted({ name, tick }: AskedTick, isDue: boolean): string | undefined {
    const last = this.#last.get(name);
    this.#last.set(name, tick);
    const state = this.#of(name, tick);
    const isAgain = last === tick && isDue && state.isDue;
    state.isDue = isDue;
    return last === undefined || tick > last || isAgain ? undefined : `${last}, then ${tick}`;
  }

  /** A run begins. @returns what is wrong with that. */
  begins({ name, tick, uuid, attempt }: TickRun, maxAttempts: number): string | undefined {
    const { runs, recorded } = this.#of(name, tick);
    const before = runs.at(-1)?.attempt ?? 0;
    runs.push({ uuid, attempt });
    if (recorded !== undefined) return `${uuid} runs tick ${tick}, which ${recorded} has run`;
    if (attempt <= before) return `${uuid} is attempt ${attempt} at tick ${tick}, after attempt ${before}`;
    return runs.length > maxAttempts ? `${uuid} is run ${runs.length} of tick ${tick}, of ${maxAttempts}` : undefined;
  }

  /** A run says that it does not count, and ends. */
  uncounted({ name, tick, uuid }: TickRun): void {
    const { runs } = this.#of(name, tick);
    const index = runs.findIndex((run) => run.uuid === uuid);
    if (index >= 0) runs.splice(index, 1);
  }

  succeeded({ name, tick, uuid }: TickRun): void {
    this.#of(name, tick).succeeded.add(uuid);
  }

  /** @returns what is wrong with what has become of a row. */
  arrived({ at, before, after }: Change): string | undefined {
    const tick = after?.tick;
    if (at.sort !== LOCK_SORT || after === undefined || tick === undefined) return undefined;
    this.#shown.set(at.name, tick);
    const state = this.#of(at.name, tick);
    state.attempts = Math.max(state.attempts, after.attempt ?? 0);
    const isOpen = after.due === tick;
    if (!isOpen) state.isDone = true;
    const begun = state.runs.at(-1)?.attempt ?? 0;
    if ((after.attempt ?? 0) < begun) return `tick ${tick} shows attempt ${after.attempt}, and ${begun} has begun`;
    if (before?.tick !== tick || isOpen === (before.due === tick)) return undefined;
    if (isOpen) return `tick ${tick} is open again`;
    const by = before.uuid ?? "nobody";
    const { recorded, runs, succeeded } = state;
    state.recorded = by;
    if (recorded !== undefined) return `tick ${tick} is recorded for ${recorded}, and then for ${by}`;
    if (!succeeded.has(by)) return `tick ${tick} is recorded for ${by}, which has not succeeded`;
    return runs.at(-1)?.uuid === by ? undefined : `tick ${tick} is recorded for ${by}, after another run has begun`;
  }

  /** A call hears that its run was recorded. @returns what is wrong with that. */
  acknowledged({ name, tick, uuid }: TickRun): string | undefined {
    const { recorded } = this.#of(name, tick);
    return recorded === uuid ? undefined : `tick ${tick} was to be recorded for ${uuid}, and is for ${recorded}`;
  }

  /** A call got no run. @returns what is wrong with the reason. */
  refused({ name, tick }: AskedTick, because: Refusal, maxAttempts: number): string | undefined {
    const { isDone, attempts } = this.#of(name, tick);
    const isTrue = {
      held: true,
      done: isDone,
      superseded: (this.#shown.get(name) ?? tick) > tick,
      "gave-up": attempts >= maxAttempts,
    }[because];
    return isTrue ? undefined : `tick ${tick} is not ${because} after ${attempts} of ${maxAttempts} attempts`;
  }

  #of(name: string, tick: number): Tick {
    const key = `${tick}/${name}`;
    const fresh = { isDue: false, isDone: false, attempts: 0, recorded: undefined };
    return entryOf(this.#ticks, key, () => ({ ...fresh, runs: [], succeeded: new Set() }));
  }
}
