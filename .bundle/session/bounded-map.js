export class BoundedMap extends Map {
    #most;
    constructor(most) {
        super();
        this.#most = most;
    }
    set(key, value) {
        this.delete(key);
        super.set(key, value);
        for (const oldest of this.keys()) {
            if (this.size <= this.#most)
                break;
            this.delete(oldest);
        }
        return this;
    }
}
