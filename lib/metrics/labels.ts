import { type Attributes, LOCK_NAME } from "./metrics.js";

/** Whether names of locks are attributes; or what makes a label of a name, and undefined of one that gets none. */
export type LockNames = boolean | ((name: string) => string | undefined);

/** The attributes that a lock's name comes to. */
export type Labels = (name: string | undefined) => Attributes;

const NONE: Attributes = {};

/** @param report is told of an error of the caller's function: thrown, it would end the process. */
export function labelling(lockNames: LockNames, report: (message: string, error: unknown) => void): Labels {
  return (name) => {
    if (lockNames === false || name === undefined) return NONE;
    try {
      const label = lockNames === true ? name : lockNames(name);
      return label === undefined ? NONE : { [LOCK_NAME]: label };
    } catch (error) {
      report(`dynamutex: lockNames has thrown for lock ${JSON.stringify(name)}`, error);
      return NONE;
    }
  };
}
