import { now } from "../../support/monotonic.js";
import type { Holding } from "./holding.js";
import type { Shelf } from "./shelf.js";

/** A lock that was handed off, for whoever goes on with it. */
export interface Token {
  /** The section that has handed it off. */
  readonly by: string;
  readonly holding: Holding | undefined;
  readonly token: string;
}

/** How long tokens stay on offer, used or not, in ms. */
const ON_OFFER_MS = 5_000;

/** Sections leave the tokens of a lock in the table: those of a host that is dead stay. */
export async function post(tokens: Shelf<Token>, token: Token): Promise<void> {
  await tokens.put(`${sortAt(now())} ${token.by}`, token);
}

/** Those of the last seconds, whether somebody goes on with them already or not. */
export async function offered(tokens: Shelf<Token>): Promise<Token[]> {
  return await tokens.all(sortAt(now() - ON_OFFER_MS));
}

function sortAt(stopwatchMs: number): string {
  return String(Math.floor(Math.max(0, stopwatchMs))).padStart(15, "0");
}
