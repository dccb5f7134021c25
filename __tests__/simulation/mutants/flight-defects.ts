import type { Defect } from "./defects.js";

const FLIGHTS = "lib/flights/flights.js";
const LOOK = "lib/flights/look.js";

/** Defects of `singleFlight()`. What each breaks is a sentence of docs/single-flight.md. */
export const FLIGHT_DEFECTS: readonly Defect[] = [
  {
    name: "a flight that was over before the call counts",
    patches: [
      {
        file: LOOK,
        find: /return over !== undefined && found !== undefined && !over\.has\(found\.id\)/g,
        replace: "return found !== undefined",
      },
    ],
  },
  {
    name: "a result is dated by the latest time that it may have been",
    patches: [
      {
        file: FLIGHTS,
        find: /earliestOf\(this\.#session\.clock\.wall\(\)\)/g,
        replace: "Math.ceil(this.#session.clock.wall().latest)",
      },
    ],
  },
  {
    name: "which flights were over is read eventually consistent",
    patches: [{ file: LOOK, find: /consistent: isConsistent \}/g, replace: "consistent: false }" }],
  },
];
