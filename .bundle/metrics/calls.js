export class Calls {
    #instruments;
    #spans;
    #labels;
    #calls = new Map();
    #sections = new Map();
    constructor(instruments, spans, labels) {
        this.#instruments = instruments;
        this.#spans = spans;
        this.#labels = labels;
    }
    listeners = {
        "dynamutex:asked": ({ name, call, locks }) => {
            const attributes = this.#labels(name);
            this.#calls.set(call, { attributes, beginSpan: this.#spans.here(), left: locks });
            this.#instruments.calls(1, attributes);
            this.#instruments.waiting(1, attributes);
        },
        "dynamutex:acquired": (message) => {
            const asked = this.#calls.get(message.call);
            if (asked !== undefined)
                asked.left -= 1;
            if (asked?.left === 0)
                this.#waited(message, "acquired");
            this.#begin(message, asked?.beginSpan ?? this.#spans.anywhere());
        },
        "dynamutex:missed": (message) => {
            const asked = this.#waited(message, "missed");
            if (asked === undefined)
                return;
            this.#instruments.misses(1, { ...asked.attributes, "dynamutex.because": message.because });
        },
        "dynamutex:failed": (message) => {
            const asked = this.#waited(message, "failed");
            if (asked === undefined)
                return;
            const { because, cause } = message;
            const type = because === "error" ? { "error.type": typeOf(cause) } : undefined;
            this.#instruments.failures(1, { ...asked.attributes, "dynamutex.because": because, ...type });
        },
        "dynamutex:wanted": (message) => {
            const section = this.#sections.get(sectionKey(message));
            if (section === undefined)
                return;
            this.#instruments.wanted(1, section.attributes);
            section.span.wanted();
        },
        "dynamutex:lost": (message) => {
            const section = this.#sections.get(sectionKey(message));
            if (section === undefined)
                return;
            const { attributes, span } = section;
            const { reason, cause } = message;
            section.isLost = true;
            this.#instruments.held(-1, attributes);
            this.#instruments.losses(1, { ...attributes, "dynamutex.reason": reason });
            span.lost(reason, cause);
        },
        "dynamutex:released": (message) => {
            const section = this.#sections.get(sectionKey(message));
            if (section === undefined)
                return;
            const outcome = section.isLost ? "lost" : "released";
            const attributes = { ...section.attributes, "dynamutex.outcome": outcome };
            this.#instruments.holdDuration(message.heldMs / 1_000, attributes);
            this.#end(section);
            this.#sections.delete(sectionKey(message));
        },
    };
    end() {
        for (const { attributes } of this.#calls.values())
            this.#instruments.waiting(-1, attributes);
        for (const section of this.#sections.values())
            this.#end(section);
        this.#calls.clear();
        this.#sections.clear();
    }
    #begin(message, beginSpan) {
        const { name, takeover } = message;
        const attributes = this.#labels(name);
        this.#sections.set(sectionKey(message), { attributes, span: beginSpan(message, attributes), isLost: false });
        this.#instruments.held(1, attributes);
        if (takeover !== undefined)
            this.#instruments.takeovers(1, { ...attributes, "dynamutex.takeover": takeover });
    }
    #waited({ call, waitedMs }, outcome) {
        const asked = this.#calls.get(call);
        if (asked === undefined)
            return undefined;
        const { attributes } = asked;
        this.#calls.delete(call);
        this.#instruments.waiting(-1, attributes);
        this.#instruments.waitDuration(waitedMs / 1_000, { ...attributes, "dynamutex.outcome": outcome });
        return asked;
    }
    #end({ attributes, span, isLost }) {
        if (!isLost)
            this.#instruments.held(-1, attributes);
        span.end();
    }
}
const sectionKey = ({ call, name }) => `${call}/${name}`;
function typeOf(error) {
    const { code, name } = Object(error);
    return typeof code === "string" ? code : String(name);
}
