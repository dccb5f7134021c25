/** The variables that the AWS SDK takes keys from. */
const KEYS = ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"];

/** What was warned of. */
const warned = new Set<string>();

/**
 * Says which variables hold a key with white space at its beginning or end, such as the newline of the file that it was read from:
 * the SDK signs with it as it is. Undefined if none does, and where a profile goes before the variables.
 */
export function paddedKey(): string | undefined {
  const { env } = process;
  if (env.AWS_PROFILE || !env.AWS_ACCESS_KEY_ID || !env.AWS_SECRET_ACCESS_KEY) return undefined;
  const padded = KEYS.filter((name) => env[name]?.trim() !== env[name]);
  if (padded.length === 0) return undefined;
  return (
    `there is a newline or a space at the beginning or end of ${padded.join(" and ")}, which no key of AWS has: remove it there, or in ` +
    "the secret or file that the variable is set from"
  );
}

/** Warns once of such a key, before anything is sent: an engine that checks no signature takes it, and AWS refuses it. */
export function warnOfPaddedKey(): void {
  const message = paddedKey();
  if (message === undefined || warned.has(message)) return;
  warned.add(message);
  process.emitWarning(`${message}. DynamoDB refuses what is signed with it`, "DynamutexWarning");
}
