/** Where the AWS SDK finds an endpoint other than AWS's own. */
const ENDPOINTS = ["AWS_ENDPOINT_URL_DYNAMODB", "AWS_ENDPOINT_URL"];

const CLIENTS_ENDPOINT = `the client's endpoint (${ENDPOINTS.join(", ")}, endpoint_url in ~/.aws/config)`;

/** The addresses that were warned of. */
const warned = new Set<string>();

/**
 * What to do about an address that cannot be right: nothing listens there, or what does speaks no TLS; no such host exists, the
 * endpoint is no URL, the region is no name. Undefined for any other failure. A failure that passes by its looks is told of at once: its request is tried
 * again for seconds, and nobody would know why nothing happens.
 */
export function unreachable(error: unknown): string | undefined {
  const refusedAt = foundInAll(error, /\bconnect ECONNREFUSED (\S+)/);
  const noUrl = endpointWithoutScheme(error, refusedAt);
  if (refusedAt !== undefined) return told(refusedAt, noUrl ?? refused(refusedAt));
  const host = foundInAll(error, /\bgetaddrinfo (?:ENOTFOUND|EAI_AGAIN) (\S+)/);
  if (host !== undefined) return told(host, unknownHost(host));
  const noTls = foundInAll(error, /\bEPROTO\b.*(wrong version number|packet length too long)/is);
  if (noTls !== undefined) return told("TLS", withoutTls());
  const region = foundInAll(error, /^Region not accepted: region="(.*?)"/);
  if (region === undefined) return noUrl;
  return `${JSON.stringify(region)} is no region: ${correct(["AWS_REGION"], (value) => value === region, "the client's region")}`;
}

function refused(address: string): string {
  const hasItsPort = new RegExp(`${address.slice(address.lastIndexOf(":"))}(/|$)`);
  const remedy = correct(ENDPOINTS, (value) => hasItsPort.test(value), CLIENTS_ENDPOINT);
  return `nothing listens at ${address}: start what is to answer there, or ${remedy}`;
}

/** What to do about a host that answers and is not DynamoDB. @param host with its port, if that is not the usual one. */
export function wrongEndpoint(host: string): string {
  const noUrl = variableWithoutScheme();
  if (noUrl !== undefined) return noUrl;
  const remedy = correct(ENDPOINTS, (value) => value.replace(/^\w+:\/\//, "").startsWith(host), CLIENTS_ENDPOINT);
  return `${remedy}, or what stands before it, such as a proxy, a load balancer or a login page`;
}

/** An engine on one's own machine speaks HTTP alone. */
function withoutTls(): string {
  const remedy = correct(ENDPOINTS, (value) => /^https:/i.test(value), "the client's endpoint");
  return `the endpoint does not speak TLS, so it has to begin with http://: ${remedy}`;
}

function unknownHost(host: string): string {
  if (/^\d{12}\.ddb\./.test(host)) {
    return (
      `no host of the name ${host} is found, which is the endpoint of the account: set AWS_ACCOUNT_ID_ENDPOINT_MODE=disabled for the ` +
      `Region's endpoint, or let DNS in this network resolve *${host.slice("123456789012".length)}`
    );
  }
  const elsewhere = `the client's region or endpoint (AWS_REGION, ${ENDPOINTS.join(", ")}, region and endpoint_url in ~/.aws/config)`;
  const isIn = (value: string, name: string): boolean =>
    name === "AWS_REGION" ? host.split(".").includes(value) : hostOf(value) === host;
  return `no host of the name ${host} is found: ${correct([...ENDPOINTS, "AWS_REGION"], isIn, elsewhere)}, or check this host's network and DNS`;
}

/** Without a scheme the SDK takes the host for one, or gives up with an error that names no variable. */
function endpointWithoutScheme(error: unknown, refusedAt: string | undefined): string | undefined {
  const { code, $metadata } = Object(error) as {
    readonly code?: unknown;
    readonly $metadata?: { readonly httpStatusCode?: number };
  };
  // `localhost:8000` is a URL of the scheme `localhost:`, and leads to the port of HTTP.
  const isElsewhere = refusedAt === undefined ? $metadata?.httpStatusCode !== undefined : /:(80|443)$/.test(refusedAt);
  return code === "ERR_INVALID_URL" || isElsewhere ? variableWithoutScheme() : undefined;
}

/** Says which variable gives an endpoint without a scheme, if one does. */
function variableWithoutScheme(): string | undefined {
  const name = ENDPOINTS.find((variable) => process.env[variable] !== undefined);
  const value = process.env[name ?? ""] ?? "";
  if (name === undefined || /^https?:\/\//i.test(value)) return undefined;
  return `${name} is ${value}, which is no URL: it has to begin with http:// or https://`;
}

/** Which variable to correct: the first whose value fits; the client's own setting if none does. */
function correct(
  variables: readonly string[],
  fits: (value: string, name: string) => boolean,
  elsewhere: string,
): string {
  const name = variables.find((variable) => fits(process.env[variable] ?? "", variable));
  return name === undefined ? `correct ${elsewhere}` : `correct ${name}, which is ${process.env[name]}`;
}

/** Warns once of each address. */
export function told(address: string, message: string): string {
  if (!warned.has(address)) {
    warned.add(address);
    process.emitWarning(`${message}. The request is tried again until its time is over`, "DynamutexWarning");
  }
  return message;
}

function hostOf(url: string): string | undefined {
  return /^\w+:\/\/([^/:]+)/.exec(url)?.[1];
}

/** What an expression finds in an error. For a name with several addresses, such as `localhost`, Node throws one error for all. */
function foundInAll(error: unknown, expression: RegExp): string | undefined {
  const { message, errors } = Object(error) as { readonly message?: unknown; readonly errors?: unknown };
  const all = Array.isArray(errors) ? errors.map((each) => String(Object(each).message)) : [String(message)];
  // The SDK wraps errors of another realm in one that has nothing but their message.
  const found = all.map((text) => expression.exec(text)?.[1]);
  return found.every((each) => each !== undefined) ? found[0] : undefined;
}
