import { execFile } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { testClientConfig, testEndpoint } from "./endpoint.js";
import { blocksOf } from "./readme.js";

const run = promisify(execFile);
const ROOT = process.cwd();

/**
 * Compiles the examples of a page in docs/, each of them a whole program, and has them run one after the other on this
 * table.
 *
 * @param order the examples to run, by their place on the page.
 * @returns what each of them printed.
 */
export async function runExamples(
  page: string,
  { tableName, order }: { readonly tableName: string; readonly order: readonly number[] },
): Promise<readonly string[]> {
  const folder = await mkdtemp(join(tmpdir(), "dynamutex-page-"));
  try {
    await mkdir(join(folder, "node_modules"));
    await symlink(ROOT, join(folder, "node_modules", "dynamutex"), "junction");
    await symlink(join(ROOT, "node_modules", "@types"), join(folder, "node_modules", "@types"), "junction");
    await writeFile(join(folder, "package.json"), JSON.stringify({ type: "module", private: true }));
    const examples = blocksOf(readFileSync(join(ROOT, "docs", page), "utf8")).filter(
      ({ language }) => language === "ts",
    );
    const files = examples.map((_, index) => `${index}.ts`);
    for (const [index, { text }] of examples.entries()) {
      const onTable = text.replaceAll('tableName: "locks"', `tableName: "${tableName}"`);
      await writeFile(join(folder, files[index] ?? ""), onTable);
    }
    const tsc = join(ROOT, "node_modules", "typescript", "bin", "tsc");
    const options = ["--target", "es2022", "--lib", "es2023,esnext.disposable", "--module", "nodenext", "--strict"];
    await run(process.execPath, [tsc, ...options, "--types", "node", ...files], { cwd: folder });
    const { region, credentials } = testClientConfig();
    const env = {
      ...process.env,
      AWS_ENDPOINT_URL_DYNAMODB: testEndpoint(),
      AWS_REGION: region,
      AWS_ACCESS_KEY_ID: credentials.accessKeyId,
      AWS_SECRET_ACCESS_KEY: credentials.secretAccessKey,
    };
    const printed: string[] = [];
    for (const index of order) {
      const { stdout } = await run(process.execPath, [join(folder, `${index}.js`)], { env });
      printed.push(stdout.trimEnd());
    }
    return printed;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** The links of a page in docs/ that lead nowhere. */
export function brokenLinks(page: string): readonly string[] {
  const text = readFileSync(join(ROOT, "docs", page), "utf8");
  const links = [...text.matchAll(/\]\(([^)#]+)\)/g)].map(([, link = ""]) => link);
  return links.filter((link) => !existsSync(join(ROOT, "docs", link)));
}
