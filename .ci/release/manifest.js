/** What package.json has to say before it is published, and the next version. */

/** Fields that are unknown until the project has a public place. */
const PLACES = {
  repository: ({ repository }) => repository?.url,
  homepage: ({ homepage }) => homepage,
  bugs: ({ bugs }) => bugs?.url,
};

/** Why a manifest cannot be published: a line for each reason. */
export function problemsOf(manifest) {
  return Object.entries(PLACES).flatMap(([field, urlIn]) => {
    const url = urlIn(manifest);
    if (url === undefined) return [`package.json has no "${field}": fill it in before the first release`];
    return /^(git\+)?https:\/\/[^/\s]+\/\S+$/.test(url) ? [] : [`package.json: "${field}" is no https address: ${url}`];
  });
}

/**
 * The version that follows. `version` is one, or which part of the last one grows: before 1.0 a change that breaks
 * users is a `minor`, everything else a `patch`.
 */
export function nextVersion(last, version) {
  const [major, minor, patch] = partsOf(last);
  if (version === "major") return `${major + 1}.0.0`;
  if (version === "minor") return `${major}.${minor + 1}.0`;
  if (version === "patch") return `${major}.${minor}.${patch + 1}`;
  const next = partsOf(version);
  const at = next.findIndex((part, index) => part !== [major, minor, patch][index]);
  // The first release has the version that the manifest starts with.
  if (at !== -1 && next[at] < [major, minor, patch][at]) throw new Error(`${version} is lower than ${last}`);
  return version;
}

function partsOf(version) {
  const parts = /^(\d+)\.(\d+)\.(\d+)$/.exec(version ?? "");
  if (parts === null) throw new Error(`say which version: patch, minor, major, or one such as 0.2.0 (got ${version})`);
  return parts.slice(1).map(Number);
}
