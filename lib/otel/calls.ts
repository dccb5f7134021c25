import {
  type Attributes,
  type Context,
  context,
  ROOT_CONTEXT,
  type Span,
  SpanStatusCode,
  type Tracer,
} from "@opentelemetry/api";
import type { Diagnostics } from "../index.js";
import type { Listeners } from "./events.js";
import type { Instruments, Labels } from "./instruments.js";

/** A call that waits: it has asked, and has not all of its locks yet. */
interface Call {
  readonly attributes: Attributes;
  /** Where it was made: its sections' spans are children of the span that was active there. */
  readonly madeIn: Context;
  /** How many of its locks are to come. Those of a set come in one turn. */
  left: number;
}

interface Section {
  readonly attributes: Attributes;
  readonly span: Span;
  isLost: boolean;
}

/**
 * Follows calls and sections from one message to the next. `waiting` and `held` go up and down by what is followed, so they
 * return to 0 also where messages from before the first are missing.
 */
export class Calls {
  readonly #instruments: Instruments;
  readonly #tracer: Tracer;
  readonly #labels: Labels;
  readonly #calls = new Map<number, Call>();
  readonly #sections = new Map<string, Section>();

  constructor(instruments: Instruments, tracer: Tracer, labels: Labels) {
    this.#instruments = instruments;
    this.#tracer = tracer;
    this.#labels = labels;
  }

  readonly listeners: Listeners = {
    "dynamutex:asked": ({ name, call, locks }) => {
      const attributes = this.#labels(name);
      this.#calls.set(call, { attributes, madeIn: context.active(), left: locks });
      this.#instruments.calls.add(1, attributes);
      this.#instruments.waiting.add(1, attributes);
    },
    "dynamutex:acquired": (message) => {
      const asked = this.#calls.get(message.call);
      if (asked !== undefined) asked.left -= 1;
      if (asked?.left === 0) this.#waited(message, "acquired");
      this.#begin(message, asked?.madeIn ?? ROOT_CONTEXT);
    },
    "dynamutex:missed": (message) => {
      const asked = this.#waited(message, "missed");
      if (asked === undefined) return;
      this.#instruments.misses.add(1, { ...asked.attributes, "dynamutex.because": message.because });
    },
    "dynamutex:failed": (message) => {
      const asked = this.#waited(message, "failed");
      if (asked === undefined) return;
      const { because, cause } = message;
      // The reason of an abort is the caller's, and may be anything.
      const type = because === "error" ? { "error.type": typeOf(cause) } : undefined;
      this.#instruments.failures.add(1, { ...asked.attributes, "dynamutex.because": because, ...type });
    },
    "dynamutex:wanted": (message) => {
      const section = this.#sections.get(sectionKey(message));
      if (section === undefined) return;
      this.#instruments.wanted.add(1, section.attributes);
      section.span.addEvent("wanted");
    },
    "dynamutex:lost": (message) => {
      const section = this.#sections.get(sectionKey(message));
      if (section === undefined) return;
      const { attributes, span } = section;
      const { reason, cause } = message;
      section.isLost = true;
      this.#instruments.held.add(-1, attributes);
      this.#instruments.losses.add(1, { ...attributes, "dynamutex.reason": reason });
      const because = cause === undefined ? undefined : { "dynamutex.cause": String(cause) };
      span.addEvent("lost", { "dynamutex.reason": reason, ...because });
      span.setStatus({ code: SpanStatusCode.ERROR, message: `The lock was lost: ${reason}` });
    },
    "dynamutex:released": (message) => {
      const section = this.#sections.get(sectionKey(message));
      if (section === undefined) return;
      const outcome = section.isLost ? "lost" : "released";
      const attributes = { ...section.attributes, "dynamutex.outcome": outcome };
      this.#instruments.holdDuration.record(message.heldMs / 1_000, attributes);
      this.#end(section);
      this.#sections.delete(sectionKey(message));
    },
  };

  /** Follows none of them any more. */
  end(): void {
    for (const { attributes } of this.#calls.values()) this.#instruments.waiting.add(-1, attributes);
    for (const section of this.#sections.values()) this.#end(section);
    this.#calls.clear();
    this.#sections.clear();
  }

  #begin(message: Diagnostics["dynamutex:acquired"], madeIn: Context): void {
    const { name, uuid, waitedMs, passedOn, takeover } = message;
    const attributes = this.#labels(name);
    const takenOver = takeover === undefined ? undefined : { "dynamutex.takeover": takeover };
    const about: Attributes = {
      "dynamutex.wait.duration": waitedMs / 1_000,
      "dynamutex.passed_on": passedOn,
      "dynamutex.uuid": uuid,
      ...takenOver,
      ...attributes,
    };
    const span = this.#tracer.startSpan("dynamutex section", { attributes: about }, madeIn);
    this.#sections.set(sectionKey(message), { attributes, span, isLost: false });
    this.#instruments.held.add(1, attributes);
    if (takenOver !== undefined) this.#instruments.takeovers.add(1, { ...attributes, ...takenOver });
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
    this.#instruments.waiting.add(-1, attributes);
    this.#instruments.waitDuration.record(waitedMs / 1_000, { ...attributes, "dynamutex.outcome": outcome });
    return asked;
  }

  #end({ attributes, span, isLost }: Section): void {
    if (!isLost) this.#instruments.held.add(-1, attributes);
    span.end();
  }
}

/** Sections of a set have the call in common. */
const sectionKey = ({ call, name }: { readonly call: number; readonly name: string }): string => `${call}/${name}`;

function typeOf(error: unknown): string {
  const { code, name } = Object(error) as { readonly code?: unknown; readonly name?: unknown };
  return typeof code === "string" ? code : String(name);
}
