/** The folder that is packed: a copy of what belongs into the tarball, whose pages have links that work from there. */
import { cp, mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join, posix } from "node:path";
import { llmsText } from "../llms.js";
import { guides } from "../pages.js";

/** Fields of the manifest that are of use in the repository alone. */
const NOT_PACKED = ["scripts", "devDependencies", "files"];

/** Stands for the repository as long as the manifest does not name one. */
const UNKNOWN = { url: "git+https://example.invalid/unknown/unknown.git" };

/** A block of code, or a link or an image whose target is neither an address nor a heading. */
const LINK = /^(`{3,})[\s\S]*?^\1|(\]\()(?![a-z][a-z0-9+.-]*:|#)([^)\s#]+)((?:#[^)\s]*)?\))/gm;

/**
 * Stages the package. README, the changelog, the guides and llms.txt lie in it as in the repository.
 * @param base the address of the repository's files at this version, with a slash at its end.
 */
export async function stage(from, to, base) {
  await mkdir(to, { recursive: true });
  const manifest = JSON.parse(await readFile(join(from, "package.json"), "utf8"));
  for (const name of [...manifest.files, "LICENSE"]) await cp(join(from, name), join(to, name), { recursive: true });
  for (const field of NOT_PACKED) delete manifest[field];
  await writeFile(join(to, "package.json"), `${JSON.stringify(manifest, null, 2)}\n`);
  const pages = ["README.md", "CHANGELOG.md", "docs/README.md", ...guides(from)];
  const packed = new Set([...pages, "LICENSE"]);
  for (const page of pages) {
    await mkdir(join(to, dirname(page)), { recursive: true });
    await writeFile(join(to, page), packedLinks(await readFile(join(from, page), "utf8"), { page, packed, base }));
  }
  await writeFile(join(to, "llms.txt"), llmsText({ root: from, withDesign: false }));
}

/** The text of a page with every link to a file that is not packed as an absolute one, in text or as an image. */
export function packedLinks(markdown, { page, packed, base }) {
  return markdown.replaceAll(LINK, (found, _fence, before, target, after) => {
    if (target === undefined) return found;
    const path = posix.join(posix.dirname(page), target);
    return packed.has(path) ? found : `${before}${base}${path}${after}`;
  });
}

/** Where the files of a version are, given the manifest's repository. */
export function filesAt({ repository = UNKNOWN }, version) {
  return `${repository.url.replace(/^git\+/, "").replace(/\.git$/, "")}/blob/v${version}/`;
}
