/** What the lock's row says of the last single flight: which value is its result. */
export interface FlightResult {
  /** The uuid of the acquisition that the flight ran under: a flight never passes its lease on, so it is its own. */
  readonly id: string;
  /** The earliest that the table's clock can have shown when the flight began, in epoch ms. */
  readonly made: number;
}

/** The lock's row, and that of the value: as much of them as says which result counts. */
interface Named {
  readonly result: FlightResult | undefined;
}
interface Value {
  readonly uuid: string | undefined;
}

/** The condition has seen that an `id` is a string, wherever there is one. */
export function flightResultIn(value: unknown): FlightResult | undefined {
  const { id, made } = Object(value) as Partial<FlightResult>;
  return typeof id === "string" ? { id, made: Number(made) } : undefined;
}

/** The result that counts: what the lock's row names, where that value is there. */
export function countingResult(lock: Named | undefined, value: Value | undefined): FlightResult | undefined {
  return lock?.result !== undefined && lock.result.id === value?.uuid ? lock.result : undefined;
}

/** Every flight that may be over by now. A value that is not named counts too: an older process drops its name. */
export function overBy(lock: Named | undefined, value: Value | undefined): ReadonlySet<string> {
  return new Set([lock?.result?.id, value?.uuid].flatMap((id) => id ?? []));
}
