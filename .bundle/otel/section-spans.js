import { context, ROOT_CONTEXT, SpanStatusCode } from "@opentelemetry/api";
export function spansOf(tracer) {
    const beginIn = (madeIn) => ({ uuid, waitedMs, passedOn, takeover }, labels) => {
        const attributes = {
            "dynamutex.wait.duration": waitedMs / 1_000,
            "dynamutex.passed_on": passedOn,
            "dynamutex.uuid": uuid,
            ...(takeover === undefined ? undefined : { "dynamutex.takeover": takeover }),
            ...labels,
        };
        const span = tracer.startSpan("dynamutex section", { attributes }, madeIn);
        return {
            wanted: () => {
                span.addEvent("wanted");
            },
            lost: (reason, cause) => {
                const because = cause === undefined ? undefined : { "dynamutex.cause": String(cause) };
                span.addEvent("lost", { "dynamutex.reason": reason, ...because });
                span.setStatus({ code: SpanStatusCode.ERROR, message: `The lock was lost: ${reason}` });
            },
            end: () => span.end(),
        };
    };
    return { here: () => beginIn(context.active()), anywhere: () => beginIn(ROOT_CONTEXT) };
}
