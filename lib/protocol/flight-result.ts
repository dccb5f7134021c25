/** What the lock's row says of the last single flight: which value is its result. */
export interface FlightResult {
  /** The uuid of the acquisition that the flight ran under. It identifies the flight, which never passes its lease on. */
  readonly id: string;
  /** The earliest that the table's clock can have shown when the flight began, in epoch ms. */
  readonly made: number;
}

/** The parts of the lock's row and of the value's row that decide which result counts. */
interface NamingRow {
  readonly result: FlightResult | undefined;
}
interface Value {
  readonly uuid: string | undefined;
}

/** Reads the attribute `result`. The conditions of a row have checked that its `id` is a string, if there is one. */
export function flightResultIn(value: unknown): FlightResult | undefined {
  const { id, made } = Object(value) as Partial<FlightResult>;
  return typeof id === "string" ? { id, made: Number(made) } : undefined;
}

/** The result that counts: the one that the lock's row names, if its value is there. */
export function countingResult(lock: NamingRow | undefined, value: Value | undefined): FlightResult | undefined {
  return lock?.result !== undefined && lock.result.id === value?.uuid ? lock.result : undefined;
}

/** Every flight that may be over by now. A value that the lock's row does not name counts too: an older process drops the name. */
export function overBy(lock: NamingRow | undefined, value: Value | undefined): ReadonlySet<string> {
  return new Set([lock?.result?.id, value?.uuid].flatMap((id) => id ?? []));
}
