/** Where the AWS SDK finds an endpoint other than AWS's own. */
const VARIABLES = ["AWS_ENDPOINT_URL_DYNAMODB", "AWS_ENDPOINT_URL"];

/** The addresses that were warned of. */
const warned = new Set<string>();

/**
 * What to do about a connection that was refused; undefined for any other failure. The first at an address is told of at once:
 * requests are tried again for seconds, and nobody would know why nothing happens.
 */
export function refusedConnection(error: unknown): string | undefined {
  const address = refusedBy(error);
  if (address === undefined) return undefined;
  const hasItsPort = new RegExp(`${address.slice(address.lastIndexOf(":"))}(/|$)`);
  const variable = VARIABLES.find((name) => hasItsPort.test(process.env[name] ?? ""));
  const remedy =
    variable === undefined
      ? `start what is to answer there, or correct the client's endpoint (${VARIABLES.join(", ")}, endpoint_url in ~/.aws/config)`
      : `start what is to answer there, or correct ${variable}, which is ${process.env[variable]}`;
  const message = `nothing listens at ${address}: ${remedy}`;
  if (!warned.has(address)) {
    warned.add(address);
    process.emitWarning(`${message}. The request is tried again until its time is over`, "DynamutexWarning");
  }
  return message;
}

/** The address that refused a connection. For a name with several, such as `localhost`, Node throws one error for all. */
function refusedBy(error: unknown): string | undefined {
  const { message, errors } = Object(error) as { readonly message?: unknown; readonly errors?: unknown };
  const all = Array.isArray(errors) ? errors.map((each) => String(Object(each).message)) : [String(message)];
  // The SDK wraps errors of another realm in one that has nothing but their message.
  const addresses = all.map((text) => /\bconnect ECONNREFUSED (\S+)/.exec(text)?.[1]);
  return addresses.every((address) => address !== undefined) ? addresses[0] : undefined;
}
