/**
 * Compares the public types of each entry point with its report in docs/design/api/, by api-extractor; with `--local` it writes the reports.
 */
import { resolve } from "node:path";
import { Extractor, ExtractorConfig } from "@microsoft/api-extractor";
import { DIST, MODULES } from "./entries.js";

const FILE = resolve(".ci/api-extractor.json");
const SILENT = { logLevel: "none", addToApiReportFile: false };

for (const { name, file } of MODULES) {
  const configObject = ExtractorConfig.loadFile(FILE);
  configObject.mainEntryPointFilePath = resolve(DIST, `${file}.d.ts`);
  configObject.apiReport.reportFileName = `dynamutex${name.slice(1).replace("/", "-")}.api.md`;
  // What the other entry points share with the main one is in its report.
  if (name !== ".") {
    const { extractorMessageReporting } = configObject.messages;
    Object.assign(extractorMessageReporting, { "ae-forgotten-export": SILENT, "ae-unresolved-link": SILENT });
  }
  const config = ExtractorConfig.prepare({
    configObject,
    configObjectFullPath: FILE,
    packageJsonFullPath: resolve("package.json"),
  });
  const { succeeded } = Extractor.invoke(config, { localBuild: process.argv.includes("--local") });
  if (!succeeded) process.exitCode = 1;
}
