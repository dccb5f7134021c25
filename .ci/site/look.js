/** Opens every page of the built site in a headless Chromium: it has its heading and pictures, and its links lead somewhere. */
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { extname, join } from "node:path";
import { chromium } from "playwright-core";

const [folder, ...sources] = process.argv.slice(2);
const TYPES = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml" };
const QUIET = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync", "--no-first-run"];

const server = createServer(async ({ url }, response) => {
  const path = decodeURIComponent(new URL(url, "http://site").pathname);
  const file = join(folder, path.endsWith("/") ? `${path}index.html` : path);
  const body = await readFile(file).catch(() => undefined);
  response.writeHead(body === undefined ? 404 : 200, { "content-type": TYPES[extname(file)] ?? "text/plain" });
  response.end(body);
});
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
const site = `http://127.0.0.1:${server.address().port}`;
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: QUIET });
const page = await browser.newPage();
const faults = [];
page.on("pageerror", (error) => faults.push(`${page.url()}: ${error.message}`));
page.on("response", (response) => {
  if (response.status() >= 400) faults.push(`${page.url()}: ${response.status()} for ${response.url()}`);
});

const anchors = new Map();
const links = new Map();
for (const source of sources) {
  const path = `/${source.replace(/(^|\/)index\.md$/, "$1").replace(/\.md$/, ".html")}`;
  await page.goto(`${site}${path}`, { waitUntil: "networkidle" });
  const found = await page.evaluate(() => ({
    title: document.querySelector("main h1, main h2")?.textContent ?? "",
    ids: [...document.querySelectorAll("[id]")].map(({ id }) => id),
    hrefs: [...document.querySelectorAll("main a[href]")].map(({ href }) => href),
    undrawn: [...document.querySelectorAll(".mermaid")].filter((picture) => picture.querySelector("svg") === null)
      .length,
    broken: [...document.images].filter((image) => image.naturalWidth === 0).map(({ src }) => src),
  }));
  if (found.title === "") faults.push(`${path} has no heading`);
  if (found.undrawn > 0) faults.push(`${path} has ${found.undrawn} pictures that are not drawn`);
  for (const image of found.broken) faults.push(`${path} has a broken picture: ${image}`);
  anchors.set(path, new Set(found.ids));
  links.set(
    path,
    found.hrefs.filter((href) => href.startsWith(site)),
  );
}
let followed = 0;
for (const [path, hrefs] of links) {
  for (const href of hrefs) {
    const { pathname, hash } = new URL(href);
    const ids = anchors.get(pathname) ?? anchors.get(`${pathname}.html`);
    followed += 1;
    if (ids === undefined) faults.push(`${path} links to ${pathname}, which is no page`);
    else if (hash !== "" && !ids.has(decodeURIComponent(hash.slice(1))))
      faults.push(`${path} links to ${pathname}${hash}`);
  }
}

await page.goto(`${site}/docs/`, { waitUntil: "networkidle" });
await page.locator(".VPNavBarSearch button").click();
await page.locator(".VPLocalSearchBox .search-input").fill("forceUnlock");
const hit = await page.waitForSelector(".VPLocalSearchBox .result", { timeout: 60_000 }).catch(() => undefined);
if (hit === undefined) faults.push("search finds nothing for forceUnlock");
await page.goto(`${site}/api/index.html`, { waitUntil: "networkidle" });
if (!(await page.title()).includes("dynamutex")) faults.push("the API reference is not there");

await browser.close();
server.close();
for (const fault of new Set(faults)) console.error(fault);
console.log(`${sources.length} pages, ${followed} links: ${new Set(faults).size} faults`);
if (faults.length > 0) process.exitCode = 1;
