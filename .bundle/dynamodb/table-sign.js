import { LockStoreError } from "../errors.js";
const OWN_TYPES = /^application\/(x-amz-json|x-amz-cbor|cbor)/;
export function isSigned({ "content-type": type }) {
    return type !== undefined && OWN_TYPES.test(type);
}
export class TableSign {
    #isKnown = false;
    #isSigned = false;
    get isKnown() {
        return this.#isKnown;
    }
    get isEnough() {
        return this.#isSigned;
    }
    admits(isSigned) {
        if (!isSigned)
            return !this.#isSigned;
        this.#isSigned = true;
        this.#isKnown = true;
        return true;
    }
    prove() {
        this.#isKnown = true;
    }
}
export function notTheTables(tableName, status) {
    const said = status === undefined ? "Somebody" : `A reply with status ${status}`;
    return new LockStoreError(`${said} answered in the place of table ${tableName}, and not as DynamoDB does: check what stands before it`, { transient: true, answered: false, retried: true, throttled: status === 429 });
}
export function notShown(tableName, isKnown) {
    return new LockStoreError(`The endpoint of table ${tableName} says that it wrote a row and does not show it: check that it is DynamoDB`, { transient: isKnown, answered: false, retried: true });
}
export function stillInDoubt(error) {
    if (!(error instanceof LockStoreError))
        return error;
    const { message, transient, throttled } = error;
    return new LockStoreError(message, { transient, throttled, answered: false, retried: true, cause: error });
}
