import { execFile } from "node:child_process";
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { describe, expect, it } from "@jest/globals";

const run = promisify(execFile);

/** The scripts are JavaScript without types. */
const script = (file: string) => import(pathToFileURL(join(process.cwd(), ".ci", "release", file)).href);

const CHANGELOG = `# Changelog

## [Unreleased]

### Added

- A thing.

## [0.1.0] - 2026-01-01

- The first.
`;

describe("the changelog of a release", () => {
  it("gives its Unreleased as notes, and puts them under the version", async () => {
    const { released, unreleased } = await script("changelog.js");
    expect(unreleased(CHANGELOG)).toBe("### Added\n\n- A thing.");
    const after = released(CHANGELOG, "0.2.0", "2026-02-03");
    expect(after).toContain("## [Unreleased]\n\n## [0.2.0] - 2026-02-03\n\n### Added\n\n- A thing.\n\n## [0.1.0]");
    expect(() => unreleased(after)).toThrow("nothing under Unreleased");
    expect(() => released(CHANGELOG, "0.1.0", "2026-02-03")).toThrow("has a 0.1.0 already");
  });
});

describe("the repository itself", () => {
  it.each(["pack", "publish"])("is refused by npm %s, with the command that makes a package", async (command) => {
    const refused = run("npm", [command, "--dry-run", "--offline"]);
    await expect(refused).rejects.toMatchObject({ stderr: expect.stringContaining("`npm run release -- minor`") });
  });

  it("is installed from git without a word", async () => {
    const env = { ...process.env, npm_command: "install" };
    expect(await run("node", [".ci/release/prepack.js"], { env })).toEqual({ stdout: "", stderr: "" });
  });
});

describe("the manifest of a release", () => {
  it("is refused without each of repository, homepage and bugs, and with one that is no address", async () => {
    const { problemsOf } = await script("manifest.js");
    const whole = {
      repository: { type: "git", url: "git+https://host.invalid/a/b.git" },
      homepage: "https://host.invalid/a/b#readme",
      bugs: { url: "https://host.invalid/a/b/issues" },
    };
    expect(problemsOf(whole)).toEqual([]);
    for (const field of Object.keys(whole)) {
      expect(problemsOf({ ...whole, [field]: undefined })).toEqual([expect.stringContaining(`no "${field}"`)]);
    }
    expect(problemsOf({ ...whole, homepage: "to be filled in" })).toEqual([
      expect.stringContaining("no https address"),
    ]);
  });

  it("gets the places that it leaves out from the CI system of the repository, next to its name", async () => {
    const { problemsOf, withPlaces } = await script("manifest.js");
    const manifest = { name: "a", version: "0.1.0", description: "A thing", license: "MIT" };
    expect(withPlaces(manifest, {})).toEqual(manifest);
    const onGitHub = withPlaces(manifest, { GITHUB_SERVER_URL: "https://host.invalid", GITHUB_REPOSITORY: "a/b" });
    expect(onGitHub).toEqual({
      ...manifest,
      repository: { type: "git", url: "git+https://host.invalid/a/b.git" },
      homepage: "https://host.invalid/a/b#readme",
      bugs: { url: "https://host.invalid/a/b/issues" },
    });
    expect(Object.keys(onGitHub).slice(0, 4)).toEqual(["name", "version", "description", "repository"]);
    const onGitLab = withPlaces(manifest, { CI_PROJECT_URL: "https://host.invalid/a/b" });
    expect(onGitLab.bugs.url).toBe("https://host.invalid/a/b/-/issues");
    expect([problemsOf(onGitHub), problemsOf(onGitLab)]).toEqual([[], []]);
    // What the manifest says itself goes before.
    const own = { ...manifest, homepage: "https://host.invalid/docs" };
    expect(withPlaces(own, { CI_PROJECT_URL: "https://host.invalid/a/b" }).homepage).toBe(own.homepage);
  });

  it("has the words under which people look for it", async () => {
    const { keywords } = JSON.parse(await readFile("package.json", "utf8"));
    const sought = "aws lambda semaphore scheduler nestjs redlock single-flight rate-limit dynamodb lock cron".split(
      " ",
    );
    expect(keywords).toEqual(expect.arrayContaining(sought));
  });

  it("gets a version that is not lower than the last", async () => {
    const { nextVersion } = await script("manifest.js");
    expect(["patch", "minor", "major", "0.1.4", "0.10.0"].map((version) => nextVersion("0.1.4", version))).toEqual([
      ...["0.1.5", "0.2.0", "1.0.0", "0.1.4", "0.10.0"],
    ]);
    expect(() => nextVersion("0.10.0", "0.9.9")).toThrow("lower");
    expect(() => nextVersion("0.1.4", undefined)).toThrow("say which version");
  });
});

describe("the tarball of a release", () => {
  it("has pages whose links lead to each other, and for all else to the tag", async () => {
    const { filesAt, packedLinks } = await script("stage.js");
    const base = filesAt({ repository: { url: "git+https://host.invalid/a/b.git" } }, "0.2.0");
    expect(base).toBe("https://host.invalid/a/b/blob/v0.2.0/");
    const packed = new Set(["README.md", "docs/a.md", "docs/z.md"]);
    const links =
      "[a](a.md#b) ![c](./c.svg) [d](#d) [e](https://host.invalid/e) [f](mailto:f@host.invalid) [g](../README.md)";
    const code = "```ts\n[h](h)\n```";
    expect(
      packedLinks(`${links} [i](../CONTRIBUTING.md#i)\n${code}\n[j](j/)`, { page: "docs/z.md", packed, base }),
    ).toBe(`${links.replace("./", `${base}docs/`)} [i](${base}CONTRIBUTING.md#i)\n${code}\n[j](${base}docs/j/)`);
  });

  it("has no manifest fields that are of use in the repository alone, the guides, and no pages for maintainers", async () => {
    const { stage } = await script("stage.js");
    const folder = await mkdtemp(join(tmpdir(), "dynamutex-stage-"));
    try {
      const manifest = { name: "a", version: "0.1.0", files: ["CHANGELOG.md"], scripts: {}, devDependencies: {} };
      const files: Readonly<Record<string, string>> = {
        "package.json": JSON.stringify(manifest),
        LICENSE: "",
        "CHANGELOG.md": "[x](y.md) [guide](docs/guide.md)",
        "README.md": "# a\n\nIt is [a thing](docs/guide.md).\n\n```ts\na();\n```\n",
        "docs/README.md": "# Index\n\n## Guides\n\n- [How?](guide.md)\n\n## Design\n\n- [Why?](model.md)\n",
        "docs/guide.md": "# The guide\n\nHow?\n",
        "docs/model.md": "# The model\n\nWhy?\n",
      };
      await mkdir(join(folder, "docs"));
      for (const [file, text] of Object.entries(files)) await writeFile(join(folder, file), text);
      const staged = join(folder, "staged");
      await stage(folder, staged, "https://host.invalid/");
      const read = (file: string) => readFile(join(staged, file), "utf8");
      expect(JSON.parse(await read("package.json"))).toEqual({ name: "a", version: "0.1.0" });
      expect(await read("CHANGELOG.md")).toBe("[x](https://host.invalid/y.md) [guide](docs/guide.md)");
      expect((await readdir(join(staged, "docs"))).sort()).toEqual(["README.md", "guide.md"]);
      expect(await read("docs/README.md")).toContain("- [How?](guide.md)");
      expect(await read("docs/README.md")).toContain("- [Why?](https://host.invalid/docs/model.md)");
      expect(await read("llms.txt")).toBe(
        [
          "# a",
          "> It is a thing.",
          "- [Overview](README.md): install, take a lock, what is promised",
          "## Guides",
          "- [The guide](docs/guide.md): How?\n",
        ].join("\n\n"),
      );
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  });
});

it("the workflow of a release is started by hand, is off by default, and may say where the package was built", async () => {
  const workflow = await readFile(".github/workflows/release.yml", "utf8");
  for (const part of ["id-token: write", "contents: write", "if: vars.RELEASES != 'on'", "npm run release --"])
    expect(workflow).toContain(part);
  expect(workflow).toMatch(/^on:\n {2}workflow_dispatch:/m);
  expect(workflow).not.toMatch(/^ {2}(push|schedule|pull_request|release):/m);
  // What is typed in reaches the shell as a variable, and never as a part of the script.
  expect(workflow.match(/^ *run: .*$|^ {8}run: \|[\s\S]*?(?=\n {6}- )/gm)?.join("")).not.toContain("${{");
});

it("a release without a version, a repository or provenance stops before it tests anything", async () => {
  const env = { ...process.env, ACTIONS_ID_TOKEN_REQUEST_URL: undefined, GITLAB_CI: undefined };
  const refused = run(process.execPath, [".ci/release/main.js", "minor"], { env });
  await expect(refused).rejects.toMatchObject({ code: 1, stderr: expect.stringContaining("release: ") });
});
