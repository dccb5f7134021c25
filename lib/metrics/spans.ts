import type { Diagnostics } from "../index.js";
import type { Attributes } from "./metrics.js";

/** The span of a section: what is told of it until it ends. */
export interface SectionSpan {
  wanted(): void;
  lost(reason: Diagnostics["dynamutex:lost"]["reason"], cause: unknown): void;
  end(): void;
}

/** Begins the span of a section. @param labels the attributes that its lock's name comes to. */
export type BeginSpan = (message: Diagnostics["dynamutex:acquired"], labels: Attributes) => SectionSpan;

/** Makes the spans of sections. */
export interface Spans {
  /** For the sections of a call that is being made: their spans are children of the one that is active now. */
  here(): BeginSpan;
  /** For those of a call that began unseen. */
  anywhere(): BeginSpan;
}

const nothing = (): void => undefined;
const NO_SPAN: SectionSpan = { wanted: nothing, lost: nothing, end: nothing };
const begin: BeginSpan = () => NO_SPAN;

/** For a backend of metrics alone. */
export const NO_SPANS: Spans = { here: () => begin, anywhere: () => begin };
