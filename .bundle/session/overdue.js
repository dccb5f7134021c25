export function answeredWithin(clock, ms, answer) {
    return new Promise((resolve, reject) => {
        const cancel = Number.isFinite(ms) ? clock.alarm(Math.max(0, ms), () => resolve(undefined)) : () => undefined;
        answer.finally(cancel).then(resolve, reject);
    });
}
