import { type Attributes, diag } from "@opentelemetry/api";

/** Whether names of locks are attributes; or what makes a label of a name, and undefined of one that gets none. */
export type LockNames = boolean | ((name: string) => string | undefined);

/** The attributes that a lock's name comes to. */
export type Labels = (name: string | undefined) => Attributes;

const NONE: Attributes = {};

/** An error of the caller's function is reported to OpenTelemetry's own log: thrown, it would end the process. */
export function labelling(lockNames: LockNames): Labels {
  if (lockNames === false) return () => NONE;
  const labelOf = lockNames === true ? (name: string) => name : lockNames;
  return (name) => {
    if (name === undefined) return NONE;
    try {
      const label = labelOf(name);
      return label === undefined ? NONE : { "dynamutex.lock.name": label };
    } catch (error) {
      diag.error(`dynamutex: lockNames has thrown for lock ${JSON.stringify(name)}`, error);
      return NONE;
    }
  };
}
