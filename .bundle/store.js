import { LockStoreError } from "./errors.js";
export class BadRow extends LockStoreError {
    at;
    isDamaged;
    owner;
    constructor(message, { name, sort }, { isDamaged, owner = "" }) {
        super(message);
        this.at = { name, sort };
        this.isDamaged = isDamaged;
        this.owner = owner;
    }
}
export function sorted(items, parse) {
    const rows = [];
    const bad = [];
    for (const item of items) {
        try {
            const row = parse(item);
            if (row !== undefined)
                rows.push(row);
        }
        catch (error) {
            if (!(error instanceof BadRow))
                throw error;
            bad.push(error);
        }
    }
    return { rows, bad };
}
