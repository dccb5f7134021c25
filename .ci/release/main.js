/**
 * Releases a version: tests it, writes its notes from CHANGELOG.md, commits and tags it, publishes it with provenance, and
 * pushes. It stops at the first failure, and what it has committed by then is undone.
 *
 *   npm run release -- 0.2.0          or patch, minor, major
 *   npm run release -- --dry-run      everything up to the registry's door, in a copy that is deleted; without the tests
 *
 * Provenance is a statement of the CI system about where the tarball was built, so a release runs there.
 */
import { execFileSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { released, unreleased } from "./changelog.js";
import { nextVersion, problemsOf, withPlaces } from "./manifest.js";
import { filesAt, stage } from "./stage.js";

const args = process.argv.slice(2);
const isDry = args.includes("--dry-run");
const asked = args.find((arg) => !arg.startsWith("-")) ?? (isDry ? "patch" : undefined);
const here = process.cwd();
const temporary = mkdtempSync(join(tmpdir(), "dynamutex-release-"));
try {
  await (isDry ? rehearse() : release(here));
} catch (error) {
  console.error(`release: ${error.message}`);
  process.exitCode = 1;
} finally {
  rmSync(temporary, { recursive: true, force: true });
}

async function release(folder) {
  const problems = problemsOf(withPlaces(readJson(folder, "package.json"), process.env));
  if (problems.length > 0) throw new Error(problems.join("; "));
  if (git(folder, "status", "--porcelain") !== "") throw new Error("the work tree has changes: commit them first");
  if (!hasProvenance()) {
    throw new Error("provenance needs a CI job that may ask for an identity token: GitHub Actions or GitLab CI");
  }
  nextVersion(readJson(folder, "package.json").version, asked);
  unreleased(readFileSync(join(folder, "CHANGELOG.md"), "utf8"));
  execFileSync(join(folder, ".ci", "run"), ["--release"], { cwd: folder, stdio: "inherit" });

  const before = git(folder, "rev-parse", "HEAD");
  const version = commitAndTag(folder);
  try {
    const staged = join(temporary, "staged");
    await stage(folder, staged, filesAt(readJson(folder, "package.json"), version));
    npm(staged, "publish", "--provenance", "--access", "public");
  } catch (error) {
    git(folder, "tag", "--delete", `v${version}`);
    git(folder, "reset", "--hard", before);
    throw error;
  }
  git(folder, "push", "--atomic", "origin", "HEAD", `v${version}`);
  console.log(`release: ${version} is published; its notes are those of the tag v${version}`);
}

/** The same in a clone, up to the registry's door. */
async function rehearse() {
  const clone = join(temporary, "clone");
  git(here, "clone", "--quiet", "--no-hardlinks", "--no-tags", here, clone);
  if (!existsSync(join(here, "dist"))) throw new Error("there is no dist/: run npm run build first");
  cpSync(join(here, "dist"), join(clone, "dist"), { recursive: true });

  const manifest = withPlaces(readJson(clone, "package.json"), process.env);
  for (const problem of problemsOf(manifest)) console.log(`release: would be refused: ${problem}`);
  const version = commitAndTag(clone);
  const staged = join(temporary, "staged");
  await stage(clone, staged, filesAt(manifest, version));
  npm(staged, "publish", "--dry-run", "--ignore-scripts", "--access", "public", "--tag", "latest");
  console.log(`release: ${version} would be tagged v${version}, with these notes:\n`);
  console.log(git(clone, "tag", "--list", "--format=%(contents)", `v${version}`));
}

/** Writes the version into the files that have it, commits them and tags the commit with its notes. */
function commitAndTag(folder) {
  const manifest = withPlaces(readJson(folder, "package.json"), process.env);
  const version = nextVersion(manifest.version, asked);
  writeFileSync(join(folder, "package.json"), `${JSON.stringify(manifest, null, 2)}\n`);
  const changelog = readFileSync(join(folder, "CHANGELOG.md"), "utf8");
  const notes = unreleased(changelog);
  writeFileSync(join(folder, "CHANGELOG.md"), released(changelog, version, new Date().toISOString().slice(0, 10)));
  npm(folder, "version", version, "--no-git-tag-version", "--allow-same-version", "--ignore-scripts");

  mkdirSync(join(folder, "temp"), { recursive: true });
  const file = join(folder, "temp", `release-notes-${version}.md`);
  writeFileSync(file, `dynamutex ${version}\n\n${notes}\n`);
  git(folder, "add", "CHANGELOG.md", "package.json", "package-lock.json");
  git(folder, ...identity(), "commit", "--quiet", "--message", `release: ${version}`);
  // Headings of the notes begin with "#", which is not a comment here.
  git(folder, ...identity(), "tag", "--annotate", "--cleanup=verbatim", "--file", file, `v${version}`);
  return version;
}

/** A machine without a name for git can rehearse as well. */
function identity() {
  return isDry ? ["-c", "user.name=release", "-c", "user.email=release@example.invalid"] : [];
}

function hasProvenance() {
  const { ACTIONS_ID_TOKEN_REQUEST_URL, GITLAB_CI, SIGSTORE_ID_TOKEN } = process.env;
  return ACTIONS_ID_TOKEN_REQUEST_URL !== undefined || (GITLAB_CI !== undefined && SIGSTORE_ID_TOKEN !== undefined);
}

function git(folder, ...gitArgs) {
  return execFileSync("git", gitArgs, { cwd: folder, encoding: "utf8" }).trim();
}

function npm(folder, ...npmArgs) {
  execFileSync("npm", [...npmArgs, "--loglevel=error"], { cwd: folder, stdio: ["ignore", "inherit", "inherit"] });
}

function readJson(folder, file) {
  return JSON.parse(readFileSync(join(folder, file), "utf8"));
}
