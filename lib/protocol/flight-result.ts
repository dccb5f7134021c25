/** What the lock's row says of the last single flight: which value is its result. */
export interface FlightResult {
  /** The uuid of the acquisition that the flight ran under: a flight never passes its lease on, so it is its own. */
  readonly id: string;
  /** The earliest that the table's clock can have shown when the flight began, in epoch ms. */
  readonly made: number;
}

/** The condition has seen that an `id` is a string, wherever there is one. */
export function flightResultIn(value: unknown): FlightResult | undefined {
  const { id, made } = Object(value) as Partial<FlightResult>;
  return typeof id === "string" ? { id, made: Number(made) } : undefined;
}
