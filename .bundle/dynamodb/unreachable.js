const ENDPOINTS = ["AWS_ENDPOINT_URL_DYNAMODB", "AWS_ENDPOINT_URL"];
const warned = new Set();
export function unreachable(error) {
    const refusedAt = foundInAll(error, /\bconnect ECONNREFUSED (\S+)/);
    const noUrl = endpointWithoutScheme(error, refusedAt);
    if (refusedAt !== undefined)
        return told(refusedAt, noUrl ?? refused(refusedAt));
    const host = foundInAll(error, /\bgetaddrinfo (?:ENOTFOUND|EAI_AGAIN) (\S+)/);
    if (host !== undefined)
        return told(host, unknownHost(host));
    const noTls = foundInAll(error, /\bEPROTO\b.*(wrong version number|packet length too long)/is);
    if (noTls !== undefined)
        return told("TLS", withoutTls());
    const region = foundInAll(error, /^Region not accepted: region="(.*?)"/);
    if (region === undefined)
        return noUrl;
    return `${JSON.stringify(region)} is no region: ${correct(["AWS_REGION"], (value) => value === region, "the client's region")}`;
}
function refused(address) {
    const hasItsPort = new RegExp(`${address.slice(address.lastIndexOf(":"))}(/|$)`);
    const elsewhere = `the client's endpoint (${ENDPOINTS.join(", ")}, endpoint_url in ~/.aws/config)`;
    const remedy = correct(ENDPOINTS, (value) => hasItsPort.test(value), elsewhere);
    return `nothing listens at ${address}: start what is to answer there, or ${remedy}`;
}
function withoutTls() {
    const remedy = correct(ENDPOINTS, (value) => /^https:/i.test(value), "the client's endpoint");
    return `the endpoint does not speak TLS, so it has to begin with http://: ${remedy}`;
}
function unknownHost(host) {
    const elsewhere = `the client's region or endpoint (AWS_REGION, ${ENDPOINTS.join(", ")}, region and endpoint_url in ~/.aws/config)`;
    const isIn = (value, name) => name === "AWS_REGION" ? host.split(".").includes(value) : hostOf(value) === host;
    return `no host of the name ${host} is found: ${correct([...ENDPOINTS, "AWS_REGION"], isIn, elsewhere)}, or check this host's network and DNS`;
}
function endpointWithoutScheme(error, refusedAt) {
    const { code, $metadata } = Object(error);
    const isElsewhere = refusedAt === undefined ? $metadata?.httpStatusCode !== undefined : /:(80|443)$/.test(refusedAt);
    if (code !== "ERR_INVALID_URL" && !isElsewhere)
        return undefined;
    const name = ENDPOINTS.find((variable) => process.env[variable] !== undefined);
    const value = process.env[name ?? ""] ?? "";
    if (name === undefined || /^https?:\/\//i.test(value))
        return undefined;
    return `${name} is ${value}, which is no URL: it has to begin with http:// or https://`;
}
function correct(variables, fits, elsewhere) {
    const name = variables.find((variable) => fits(process.env[variable] ?? "", variable));
    return name === undefined ? `correct ${elsewhere}` : `correct ${name}, which is ${process.env[name]}`;
}
function told(address, message) {
    if (!warned.has(address)) {
        warned.add(address);
        process.emitWarning(`${message}. The request is tried again until its time is over`, "DynamutexWarning");
    }
    return message;
}
function hostOf(url) {
    return /^\w+:\/\/([^/:]+)/.exec(url)?.[1];
}
function foundInAll(error, expression) {
    const { message, errors } = Object(error);
    const all = Array.isArray(errors) ? errors.map((each) => String(Object(each).message)) : [String(message)];
    const found = all.map((text) => expression.exec(text)?.[1]);
    return found.every((each) => each !== undefined) ? found[0] : undefined;
}
