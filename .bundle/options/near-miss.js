const CLIENT_OPTIONS = {
    endpoint: ["endpoint", "AWS_ENDPOINT_URL_DYNAMODB"],
    endpointUrl: ["endpoint", "AWS_ENDPOINT_URL_DYNAMODB"],
    region: ["region", "AWS_REGION"],
    credentials: ["credentials", "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"],
    accessKeyId: ["credentials", "AWS_ACCESS_KEY_ID"],
    secretAccessKey: ["credentials", "AWS_SECRET_ACCESS_KEY"],
    sessionToken: ["credentials", "AWS_SESSION_TOKEN"],
    profile: ["profile", "AWS_PROFILE"],
    maxAttempts: ["maxAttempts"],
    requestHandler: ["requestHandler"],
    logger: ["logger"],
};
export function clientOptionNear(name) {
    return nearest(name, Object.keys(CLIENT_OPTIONS));
}
export function elsewhere(option) {
    const [spelt, variable] = CLIENT_OPTIONS[option] ?? [option];
    const inEnvironment = variable === undefined ? "" : `set ${variable} in the environment, or `;
    return `is not an option here, but one of the AWS SDK's client: ${inEnvironment}pass client: new DynamoDBClient({ ${spelt}: … })`;
}
export function withoutSecrets(option, value) {
    const names = [option.split(".").at(-1) ?? option, ...Object.keys(Object(value))];
    return names.some(isSecret) ? "not shown" : value;
}
function isSecret(name) {
    return CLIENT_OPTIONS[clientOptionNear(name) ?? ""]?.[0] === "credentials";
}
const ALIASES = {
    tableName: ["table"],
    waitMs: ["timeout", "acquiretimeout", "maxwait"],
    ttlMs: ["lease", "leaseduration", "leasetime"],
    renewEveryMs: ["heartbeat", "heartbeatperiod"],
};
export function aliasOf(name) {
    return Object.keys(ALIASES).find((option) => ALIASES[option]?.includes(plain(name)));
}
export function nearest(name, known) {
    const given = plain(name);
    const within = (typos) => known.find((option) => typos <= option.length / 4 && isNear(given, plain(option), typos));
    return within(0) ?? within(1) ?? within(2);
}
function plain(name) {
    return name
        .replaceAll(/[_-]/g, "")
        .replace(/((in)?ms|millis)$/i, "")
        .toLowerCase();
}
function isNear(a, b, typos) {
    if (a === b || typos === 0)
        return a === b;
    if (a[0] === b[0])
        return isNear(a.slice(1), b.slice(1), typos);
    const isSwapped = a[0] === b[1] && a[1] === b[0];
    return (isNear(a.slice(1), b, typos - 1) ||
        isNear(a, b.slice(1), typos - 1) ||
        isNear(a.slice(1), b.slice(1), typos - 1) ||
        (isSwapped && isNear(a.slice(2), b.slice(2), typos - 1)));
}
