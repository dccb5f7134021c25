/** CHANGELOG.md, as a release reads and changes it. */

const UNRELEASED = /^## \[Unreleased\]\n([\s\S]*?)(?=^## |^\[[^\]]+\]: |(?![\s\S]))/m;

/** What stands under Unreleased. @throws if nothing does. */
export function unreleased(changelog) {
  const [, notes = ""] = UNRELEASED.exec(changelog) ?? [];
  if (notes.trim() === "") throw new Error("CHANGELOG.md has nothing under Unreleased: say what users will notice");
  return notes.trim();
}

/** The changelog with Unreleased as a version of its own, and a new Unreleased above it. */
export function released(changelog, version, date) {
  const notes = unreleased(changelog);
  if (changelog.includes(`## [${version}]`)) throw new Error(`CHANGELOG.md has a ${version} already`);
  return changelog
    .replace(UNRELEASED, () => `## [Unreleased]\n\n## [${version}] - ${date}\n\n${notes}\n\n`)
    .trimEnd()
    .concat("\n");
}
