/** What the file system says, and keeps saying until somebody acts. */
const FINAL = /^(EACCES|EISDIR|ELOOP|ENOENT|ENOTDIR|EPERM)$/;

/** An error of Node's, as far as it says what a call to the operating system failed of. */
interface SystemFailure {
  readonly code?: unknown;
  readonly syscall?: unknown;
  readonly path?: unknown;
  readonly info?: { readonly code?: unknown };
}

/**
 * What to do about a file that the AWS SDK reads and cannot read: the token of a web identity, a file of credentials, or a home
 * directory that is not there. Undefined for any other failure. The network has the same codes for other things: it connects.
 */
export function unreadableFile(error: unknown): string | undefined {
  const { code, syscall, path, info } = Object(error) as SystemFailure;
  const what = String(info?.code ?? code);
  if (!FINAL.test(what) || syscall === "connect") return undefined;
  if (syscall === "uv_os_homedir") {
    return "this process has no home directory, where the AWS SDK looks for its files: set HOME";
  }
  if (typeof path !== "string") return undefined;
  const variable = Object.keys(process.env).find((name) => process.env[name] === path);
  const remedy =
    what === "EACCES" || what === "EPERM" ? "let this process read it" : "put a file there, such as by mounting it";
  return variable === undefined
    ? `the AWS SDK cannot read ${path} (${what}): ${remedy}`
    : `the AWS SDK cannot read ${path} (${what}), which ${variable} names: ${remedy}, or correct ${variable}`;
}
