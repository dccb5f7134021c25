/** Runs an example: `npm run demo -- http-service`. Without a name that is `rehearsal`; a wrong name says which ones there are. */

import { existsSync, readdirSync } from "node:fs";

const names = readdirSync(import.meta.dirname).filter((name) => existsSync(`${import.meta.dirname}/${name}/main.js`));
const [name = "rehearsal"] = process.argv.slice(2);
if (names.includes(name)) {
  await import(`./${name}/main.js`);
} else {
  console.error(`npm run demo -- NAME, where NAME is one of ${names.join(", ")}`);
  process.exitCode = 1;
}
