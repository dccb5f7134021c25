export class OwnPlaces {
    #standing = [];
    get first() {
        while (this.#standing[0]?.lost !== undefined)
            this.#standing.shift()?.giveUp();
        return this.#standing[0];
    }
    get serve() {
        return this.#standing.findLast(({ lost }) => lost === undefined)?.last ?? 0;
    }
    on(uuid) {
        return this.#standing.find((place) => place.uuid === uuid && place.lost === undefined);
    }
    add(place) {
        this.#standing.push(place);
    }
    leaveBefore(first = Number.POSITIVE_INFINITY) {
        while (this.#standing[0] !== undefined && this.#standing[0].last < first)
            this.#standing.shift()?.giveUp();
    }
}
