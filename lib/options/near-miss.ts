/** Options of the AWS SDK's client that people give to a `LockTable`: how it spells them, and what says the same in the environment. */
const CLIENT_OPTIONS: Readonly<Record<string, readonly [spelt: string, variable?: string]>> = {
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

/** The option of the AWS SDK's client that this is, or is a typo of. */
export function clientOptionNear(name: string): string | undefined {
  return nearest(name, Object.keys(CLIENT_OPTIONS));
}

/** What to do about an option that belongs to the AWS SDK's client. */
export function elsewhere(option: string): string {
  const [spelt, variable] = CLIENT_OPTIONS[option] ?? [option];
  const inEnvironment = variable === undefined ? "" : `set ${variable} in the environment, or `;
  return `is not an option here, but one of the AWS SDK's client: ${inEnvironment}pass client: new DynamoDBClient({ ${spelt}: … })`;
}

/** The value of a refused option for the error, which somebody logs: what is or has a secret is left out. */
export function withoutSecrets(option: string, value: unknown): unknown {
  const names = [option.split(".").at(-1) ?? option, ...Object.keys(Object(value))];
  return names.some(isSecret) ? "not shown" : value;
}

function isSecret(name: string): boolean {
  return CLIENT_OPTIONS[clientOptionNear(name) ?? ""]?.[0] === "credentials";
}

/** What other locks call the options of these names. */
const ALIASES: Readonly<Record<string, string>> = {
  timeout: "waitMs",
  acquiretimeout: "waitMs",
  maxwait: "waitMs",
  lease: "ttlMs",
  leaseduration: "ttlMs",
  leasetime: "ttlMs",
  heartbeat: "renewEveryMs",
  heartbeatperiod: "renewEveryMs",
};

/** Our name for what other locks call so, or the same name. */
export function aliasOf(name: string): string {
  return ALIASES[plain(name)] ?? name;
}

/** The name that somebody meant: equal except for case, underscores or a unit, or a typo away. */
export function nearest(name: string, known: readonly string[]): string | undefined {
  const distances = known.map((option) => [typosBetween(plain(name), plain(option)), option] as const);
  const [closest] = distances.sort(([a], [b]) => a - b);
  if (closest === undefined) return undefined;
  const [typos, option] = closest;
  // A third of a short word could be any other word.
  return typos <= Math.min(2, Math.floor(option.length / 4)) ? option : undefined;
}

function plain(name: string): string {
  return name
    .replaceAll(/[_-]/g, "")
    .replace(/((in)?ms|millis)$/i, "")
    .toLowerCase();
}

/** How many letters are missing, too many, wrong, or swapped with their neighbour. */
function typosBetween(a: string, b: string): number {
  let [before, last] = [[] as number[], Array.from({ length: b.length + 1 }, (_, index) => index)];
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const isSame = a[i - 1] === b[j - 1];
      const isSwapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      row[j] = Math.min(
        (last[j] ?? 0) + 1,
        (row[j - 1] ?? 0) + 1,
        (last[j - 1] ?? 0) + (isSame ? 0 : 1),
        isSwapped ? (before[j - 2] ?? 0) + 1 : Number.POSITIVE_INFINITY,
      );
    }
    [before, last] = [last, row];
  }
  return last[b.length] ?? 0;
}
