import type { Diagnostics } from "../index.js";
import type { Listeners } from "./events.js";
import type { Labels } from "./labels.js";
import type { Attributes, Instruments } from "./metrics.js";
import type { BeginSpan, SectionSpan, Spans } from "./spans.js";

/** A call that waits: it has asked, and has not all of its locks yet. */
interface Call {
  readonly attributes: Attributes;
  /** Begins the spans of its sections, as children of the span that was active where it was made. */
  readonly beginSpan: BeginSpan;
  /** How many of its locks are to come. Those of a set come in one turn. */
  left: number;
}

interface Section {
  readonly attributes: Attributes;
  readonly span: SectionSpan;
  isLost: boolean;
}

/**
 * Follows calls and sections from one message to the next. `waiting` and `held` go up and down by what is followed, so they
 * return to 0 also where messages from before the first are missing.
 */
export class Calls {
  readonly #instruments: Instruments;
  readonly #spans: Spans;
  readonly #labels: Labels;
  readonly #calls = new Map<number, Call>();
  readonly #sections = new Map<string, Section>();

  constructor(instruments: Instruments, spans: Spans, labels: Labels) {
    this.#instruments = instruments;
    this.#spans = spans;
    this.#labels = labels;
  }

  readonly listeners: Listeners = {
    "dynamutex:asked": ({ name, call, locks }) => {
      const attributes = this.#labels(name);
      this.#calls.set(call, { attributes, beginSpan: this.#spans.here(), left: locks });
      this.#instruments.calls(1, attributes);
      this.#instruments.waiting(1, attributes);
    },
    "dynamutex:acquired": (message) => {
      const asked = this.#calls.get(message.call);
      if (asked !== undefined) asked.left -= 1;
      if (asked?.left === 0) this.#waited(message, "acquired");
      this.#begin(message, asked?.beginSpan ?? this.#spans.anywhere());
    },
    "dynamutex:missed": (message) => {
      const asked = this.#waited(message, "missed");
      if (asked === undefined) return;
      this.#instruments.misses(1, { ...asked.attributes, "dynamutex.reason": message.reason });
    },
    "dynamutex:failed": (message) => {
      const asked = this.#waited(message, "failed");
      if (asked === undefined) return;
      const { reason, cause } = message;
      // The reason of an abort is the caller's, and may be anything.
      const type = reason === "error" ? { "error.type": typeOf(cause) } : undefined;
      this.#instruments.failures(1, { ...asked.attributes, "dynamutex.reason": reason, ...type });
    },
    "dynamutex:wanted": (message) => {
      const section = this.#sections.get(sectionKey(message));
      if (section === undefined) return;
      this.#instruments.wanted(1, section.attributes);
      section.span.wanted();
    },
    "dynamutex:lost": (message) => {
      const section = this.#sections.get(sectionKey(message));
      if (section === undefined) return;
      const { attributes, span } = section;
      const { reason, cause } = message;
      section.isLost = true;
      this.#instruments.held(-1, attributes);
      this.#instruments.losses(1, { ...attributes, "dynamutex.reason": reason });
      span.lost(reason, cause);
    },
    "dynamutex:released": (message) => {
      const section = this.#sections.get(sectionKey(message));
      if (section === undefined) return;
      const outcome = section.isLost ? "lost" : "released";
      const attributes = { ...section.attributes, "dynamutex.outcome": outcome };
      this.#instruments.holdDuration(message.heldMs / 1_000, attributes);
      this.#end(section);
      this.#sections.delete(sectionKey(message));
    },
  };

  /** Follows none of them any more. */
  end(): void {
    for (const { attributes } of this.#calls.values()) this.#instruments.waiting(-1, attributes);
    for (const section of this.#sections.values()) this.#end(section);
    this.#calls.clear();
    this.#sections.clear();
  }

  #begin(message: Diagnostics["dynamutex:acquired"], beginSpan: BeginSpan): void {
    const { name, takeover } = message;
    const attributes = this.#labels(name);
    this.#sections.set(sectionKey(message), { attributes, span: beginSpan(message, attributes), isLost: false });
    this.#instruments.held(1, attributes);
    if (takeover !== undefined) this.#instruments.takeovers(1, { ...attributes, "dynamutex.takeover": takeover });
  }

  /** A call waits no more. */
  #waited(
    { call, waitedMs }: { readonly call: number; readonly waitedMs: number },
    outcome: "acquired" | "missed" | "failed",
  ): Call | undefined {
    const asked = this.#calls.get(call);
    if (asked === undefined) return undefined;
    const { attributes } = asked;
    this.#calls.delete(call);
    this.#instruments.waiting(-1, attributes);
    this.#instruments.waitDuration(waitedMs / 1_000, { ...attributes, "dynamutex.outcome": outcome });
    return asked;
  }

  #end({ attributes, span, isLost }: Section): void {
    if (!isLost) this.#instruments.held(-1, attributes);
    span.end();
  }
}

/** Sections of a set have the call in common. */
const sectionKey = ({ call, name }: { readonly call: number; readonly name: string }): string => `${call}/${name}`;

function typeOf(error: unknown): string {
  const { code, name } = Object(error) as { readonly code?: unknown; readonly name?: unknown };
  return typeof code === "string" ? code : String(name);
}
