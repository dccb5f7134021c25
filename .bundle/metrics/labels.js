import { LOCK_NAME } from "./metrics.js";
const NONE = {};
export function labelling(lockNames, report) {
    return (name) => {
        if (lockNames === false || name === undefined)
            return NONE;
        try {
            const label = lockNames === true ? name : lockNames(name);
            return label === undefined ? NONE : { [LOCK_NAME]: label };
        }
        catch (error) {
            report(`dynamutex: lockNames has thrown for lock ${JSON.stringify(name)}`, error);
            return NONE;
        }
    };
}
