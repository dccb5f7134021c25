/** Three hosts with the schedule of host.ts, one of which is killed. `node main.js` shows who runs what, and checks it. */

import { threeHosts } from "../support/three-hosts.js";

await threeHosts(new URL("./host.js", import.meta.url), { runs: 5 });
