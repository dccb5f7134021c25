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
import type { Listening } from "./events.js";
import type { Instruments, Labels } from "./instruments.js";

/** A call that has asked, until it has all of its locks or ends without. */
interface Call {
  readonly attributes: Attributes;
  /** Where it was made: its sections' spans are children of the span that was active there. */
  readonly madeIn: Context;
  /** How many of its locks are to come. */
  left: number;
  isWaiting: boolean;
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

  listen(listening: Listening): void {
    listening.on("dynamutex:asked", (message) => this.#asked(message));
    listening.on("dynamutex:acquired", (message) => this.#acquired(message));
    listening.on("dynamutex:missed", (message) => this.#missed(message));
    listening.on("dynamutex:failed", (message) => this.#failed(message));
    listening.on("dynamutex:wanted", (message) => this.#wanted(message));
    listening.on("dynamutex:lost", (message) => this.#lost(message));
    listening.on("dynamutex:released", (message) => this.#released(message));
  }

  /** Follows none of them any more. */
  end(): void {
    for (const { isWaiting, attributes } of this.#calls.values()) {
      if (isWaiting) this.#instruments.waiting.add(-1, attributes);
    }
    for (const { isLost, attributes, span } of this.#sections.values()) {
      if (!isLost) this.#instruments.held.add(-1, attributes);
      span.end();
    }
    this.#calls.clear();
    this.#sections.clear();
  }

  #asked({ name, call, locks }: Diagnostics["dynamutex:asked"]): void {
    const attributes = this.#labels(name);
    this.#calls.set(call, { attributes, madeIn: context.active(), left: locks, isWaiting: true });
    this.#instruments.calls.add(1, attributes);
    this.#instruments.waiting.add(1, attributes);
  }

  #acquired(message: Diagnostics["dynamutex:acquired"]): void {
    const { name, call, uuid, waitedMs, passedOn, takeover } = message;
    const asked = this.#calls.get(call);
    if (asked !== undefined) {
      // A set waits once, and has as many sections as locks.
      this.#waited(asked, waitedMs, "acquired");
      asked.left -= 1;
      if (asked.left === 0) this.#calls.delete(call);
    }
    const attributes = this.#labels(name);
    const span = this.#tracer.startSpan(
      "dynamutex section",
      {
        attributes: {
          "dynamutex.wait.duration": waitedMs / 1_000,
          "dynamutex.passed_on": passedOn,
          "dynamutex.uuid": uuid,
          ...(takeover === undefined ? {} : { "dynamutex.takeover": takeover }),
          ...attributes,
        },
      },
      asked?.madeIn ?? ROOT_CONTEXT,
    );
    this.#sections.set(sectionKey(message), { attributes, span, isLost: false });
    this.#instruments.held.add(1, attributes);
    if (takeover !== undefined) {
      this.#instruments.takeovers.add(1, { ...attributes, "dynamutex.takeover": takeover });
    }
  }

  #missed({ call, because, waitedMs }: Diagnostics["dynamutex:missed"]): void {
    const asked = this.#ended(call, waitedMs, "missed");
    if (asked !== undefined) this.#instruments.misses.add(1, { ...asked.attributes, "dynamutex.because": because });
  }

  #failed({ call, because, cause, waitedMs }: Diagnostics["dynamutex:failed"]): void {
    const asked = this.#ended(call, waitedMs, "failed");
    if (asked === undefined) return;
    // The reason of an abort is the caller's, and may be anything.
    const type = because === "error" ? { "error.type": typeOf(cause) } : undefined;
    this.#instruments.failures.add(1, { ...asked.attributes, "dynamutex.because": because, ...type });
  }

  #wanted(message: Diagnostics["dynamutex:wanted"]): void {
    const section = this.#sections.get(sectionKey(message));
    if (section === undefined) return;
    this.#instruments.wanted.add(1, section.attributes);
    section.span.addEvent("wanted");
  }

  #lost(message: Diagnostics["dynamutex:lost"]): void {
    const section = this.#sections.get(sectionKey(message));
    if (section === undefined || section.isLost) return;
    const { attributes, span } = section;
    const { reason, cause } = message;
    section.isLost = true;
    this.#instruments.held.add(-1, attributes);
    this.#instruments.losses.add(1, { ...attributes, "dynamutex.reason": reason });
    span.addEvent("lost", {
      "dynamutex.reason": reason,
      ...(cause === undefined ? {} : { "dynamutex.cause": String(cause) }),
    });
    span.setStatus({ code: SpanStatusCode.ERROR, message: `The lock was lost: ${reason}` });
  }

  #released(message: Diagnostics["dynamutex:released"]): void {
    const key = sectionKey(message);
    const section = this.#sections.get(key);
    if (section === undefined) return;
    const { attributes, span, isLost } = section;
    this.#sections.delete(key);
    if (!isLost) this.#instruments.held.add(-1, attributes);
    const outcome = isLost ? "lost" : "released";
    this.#instruments.holdDuration.record(message.heldMs / 1_000, { ...attributes, "dynamutex.outcome": outcome });
    span.end();
  }

  #ended(call: number, waitedMs: number, outcome: "missed" | "failed"): Call | undefined {
    const asked = this.#calls.get(call);
    this.#calls.delete(call);
    if (asked !== undefined) this.#waited(asked, waitedMs, outcome);
    return asked;
  }

  #waited(asked: Call, waitedMs: number, outcome: "acquired" | "missed" | "failed"): void {
    if (!asked.isWaiting) return;
    const { attributes } = asked;
    asked.isWaiting = false;
    this.#instruments.waiting.add(-1, attributes);
    this.#instruments.waitDuration.record(waitedMs / 1_000, { ...attributes, "dynamutex.outcome": outcome });
  }
}

/** Sections of a set have the call in common. */
const sectionKey = ({ call, name }: { readonly call: number; readonly name: string }): string => `${call}/${name}`;

function typeOf(error: unknown): string {
  const { code, name } = Object(error) as { readonly code?: unknown; readonly name?: unknown };
  return typeof code === "string" ? code : String(name);
}
