/** What package.json has to say before it is published, and the next version. */
import { inc, lt, valid } from "semver";

/** Fields that are unknown until the project has a public place: {@link withPlaces} fills them in there. */
const PLACES = {
  repository: ({ repository }) => repository?.url,
  homepage: ({ homepage }) => homepage,
  bugs: ({ bugs }) => bugs?.url,
};

/**
 * A manifest with the places that it leaves out, as far as the CI system knows where the repository is. Provenance needs them: the
 * registry compares `repository` with what that system says.
 */
export function withPlaces(manifest, { GITHUB_SERVER_URL, GITHUB_REPOSITORY, CI_PROJECT_URL }) {
  const project = GITHUB_REPOSITORY === undefined ? CI_PROJECT_URL : `${GITHUB_SERVER_URL}/${GITHUB_REPOSITORY}`;
  if (project === undefined) return manifest;
  const issues = GITHUB_REPOSITORY === undefined ? "/-/issues" : "/issues";
  const { name, version, description, ...others } = manifest;
  const places = {
    repository: { type: "git", url: `git+${project}.git` },
    homepage: `${project}#readme`,
    bugs: { url: `${project}${issues}` },
  };
  return { name, version, description, ...places, ...others };
}

/** Why a manifest cannot be published: a line for each reason. */
export function problemsOf(manifest) {
  return Object.entries(PLACES).flatMap(([field, urlIn]) => {
    const url = urlIn(manifest);
    if (url === undefined)
      return [`package.json has no "${field}": fill it in, or release in a CI job of the repository`];
    return /^(git\+)?https:\/\/[^/\s]+\/\S+$/.test(url) ? [] : [`package.json: "${field}" is no https address: ${url}`];
  });
}

/**
 * The version that follows. `asked` is one, or which part of the last one grows: before 1.0 a change that breaks users is a
 * `minor`, everything else a `patch`. The first release has the version that the manifest starts with.
 */
export function nextVersion(last, asked) {
  const next = valid(asked) ?? inc(last, asked);
  if (next === null) throw new Error(`say which version: patch, minor, major, or one such as 0.2.0 (got ${asked})`);
  if (lt(next, last)) throw new Error(`${next} is lower than ${last}`);
  return next;
}
