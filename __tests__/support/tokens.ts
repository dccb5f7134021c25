const PREFIX = "dynamutex-2.";

/** What is in a token of a hand-off: the table, the key prefix, the name, the sort key and the secret. */
export function decodedToken(token: string): string[] {
  return JSON.parse(Buffer.from(token.slice(PREFIX.length), "base64url").toString());
}

/** A token with whatever somebody puts into it. */
export function encodedToken(parts: unknown): string {
  return PREFIX + Buffer.from(JSON.stringify(parts)).toString("base64url");
}
