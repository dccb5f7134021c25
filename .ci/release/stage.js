/** The folder that is packed: a copy of what belongs into the tarball, whose pages have links that work from there. */
import { cp, mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";

/** Fields of the manifest that are of use in the repository alone. */
const NOT_PACKED = ["scripts", "devDependencies", "files"];

/**
 * @param base the address that relative links of README and changelog are below, with a slash at its end: a tag of the repository.
 */
export async function stage(from, to, base) {
  await mkdir(to, { recursive: true });
  const manifest = JSON.parse(await readFile(join(from, "package.json"), "utf8"));
  for (const name of [...manifest.files, "LICENSE"]) await cp(join(from, name), join(to, name), { recursive: true });
  for (const field of NOT_PACKED) delete manifest[field];
  await writeFile(join(to, "package.json"), `${JSON.stringify(manifest, null, 2)}\n`);
  for (const page of ["README.md", "CHANGELOG.md"]) {
    await writeFile(join(to, page), withAbsoluteLinks(await readFile(join(from, page), "utf8"), base));
  }
}

/** The text with every link to a file of the repository, in text or as an image, as an absolute one. */
export function withAbsoluteLinks(markdown, base) {
  return markdown.replaceAll(/(\]\()(?![a-z][a-z0-9+.-]*:|#)(?:\.\/)?([^)\s]+\))/g, `$1${base}$2`);
}

/** Where the files of a version are, given the manifest's repository. */
export function filesAt({ repository }, version) {
  return `${repository.url.replace(/^git\+/, "").replace(/\.git$/, "")}/blob/v${version}/`;
}
