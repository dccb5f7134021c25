/**
 * Opens every page of the built site in a headless Chromium, as wide as a desk and as narrow as a phone. It has its heading and
 * pictures, its letters can be read, it does not scroll sideways, nor does code at a desk, its links lead somewhere, and the search
 * finds it, also by the words that users ask with.
 */
import { readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { extname, join, posix } from "node:path";
import { chromium } from "playwright-core";
import { guides, index, titleOf } from "../pages.js";

const [folder] = process.argv.slice(2);
const STAGED = JSON.parse(readFileSync("temp/site/pages.json", "utf8"));
const TYPES = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml" };
const QUIET = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync", "--no-first-run"];
const DESK = { width: 1_280, height: 800 };
const PHONE = { width: 390, height: 844 };
/** What users type, and the guide that answers: it is among the first three. */
const ASKED = {
  nightly: "cron",
  "time zone": "cron",
  EventBridge: "lambda",
  jest: "testing",
  sigterm: "shutdown",
  fargate: "containers",
  "redis-semaphore": "from-redis-semaphore",
};
/** Letters of a diagram that are smaller cannot be read, in CSS pixels. */
const LEAST_LETTERS = 12;

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
const page = await browser.newPage({ viewport: DESK });
const faults = [];
page.on("pageerror", (error) => faults.push(`${page.url()}: ${error.message}`));
page.on("response", (response) => {
  if (response.status() >= 400) faults.push(`${page.url()}: ${response.status()} for ${response.url()}`);
});

const anchors = new Map();
const links = new Map();
for (const { path: source } of STAGED) {
  const path = addressOf(source);
  await page.setViewportSize(DESK);
  await page.goto(`${site}${path}`, { waitUntil: "networkidle" });
  const found = await page.evaluate(() => ({
    title: document.querySelector(".VPContent :is(h1, h2)")?.textContent ?? "",
    ids: [...document.querySelectorAll("[id]")].map(({ id }) => id),
    hrefs: [...document.querySelectorAll(".VPContent a[href]")].map(({ href }) => href),
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
  await readable(path);
  await page.setViewportSize(PHONE);
  await readable(path);
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

await page.setViewportSize(DESK);
await startsWell();
await hasItsSidebar();
await finds();
await hasTwins();
await page.goto(`${site}/api/index.html`, { waitUntil: "networkidle" });
if (!(await page.title()).includes("dynamutex")) faults.push("the API reference is not there");

await browser.close();
server.close();
for (const fault of new Set(faults)) console.error(fault);
console.log(`${STAGED.length} pages, ${followed} links: ${new Set(faults).size} faults`);
if (faults.length > 0) process.exitCode = 1;

function addressOf(source) {
  return `/${source.replace(/(^|\/)index\.md$/, "$1").replace(/\.md$/, ".html")}`;
}

/** Neither the page nor a table scrolls sideways, and the letters of diagrams are not made small. */
async function readable(path) {
  const { width } = page.viewportSize();
  const wrong = await page.evaluate((least) => {
    const isWide = (element) => element.scrollWidth > element.clientWidth + 1;
    const small = [...document.querySelectorAll(".mermaid svg text")].filter(
      (text) => Number.parseFloat(getComputedStyle(text).fontSize) * text.getScreenCTM().a < least,
    );
    return {
      page: isWide(document.documentElement),
      tables: [...document.querySelectorAll(".VPContent table")].filter(isWide).length,
      code: [...document.querySelectorAll(".VPContent pre")]
        .filter(isWide)
        .map(({ textContent }) => textContent.trim()),
      small: small.map(({ textContent }) => textContent),
    };
  }, LEAST_LETTERS);
  if (wrong.page) faults.push(`${path} scrolls sideways at ${width} px`);
  // On a phone code scrolls.
  if (width >= DESK.width) {
    for (const text of wrong.code)
      faults.push(`${path} has code that scrolls sideways at ${width} px: ${text.slice(0, 60)}`);
  }
  // At a desk a table of many columns may.
  if (wrong.tables > 0 && width < 640)
    faults.push(`${path} has ${wrong.tables} tables that scroll sideways at ${width} px`);
  if (wrong.small.length > 0) faults.push(`${path} has a diagram with small letters at ${width} px: ${wrong.small[0]}`);
}

/** The start page shows its first program whole, and has an icon. */
async function startsWell() {
  await page.goto(`${site}/`, { waitUntil: "networkidle" });
  const isClipped = await page
    .locator(".VPContent pre")
    .first()
    .evaluate((code) => code.scrollWidth > code.clientWidth);
  if (isClipped) faults.push(`the first program is clipped at ${DESK.width} px`);
  const icon = await page.locator("link[rel=icon]").getAttribute("href");
  if ((await fetch(`${site}${icon}`)).status !== 200) faults.push("the site has no icon");
}

async function hasItsSidebar() {
  await page.goto(`${site}/docs/`, { waitUntil: "networkidle" });
  const listed = await page.locator(".VPSidebar a").evaluateAll((all) => all.map(({ href }) => new URL(href).pathname));
  for (const { path } of index().flatMap(({ pages }) => pages)) {
    if (!listed.includes(addressOf(path))) faults.push(`${path} is in the index and not in the sidebar`);
  }
}

/** The search finds a guide first where one asks for its title, and never what is not for users. */
async function finds() {
  const hidden = new Set(STAGED.filter(({ isFound }) => !isFound).map(({ path }) => addressOf(path)));
  const hits = () =>
    page.locator(".VPLocalSearchBox .result").evaluateAll((all) => all.map(({ href }) => new URL(href).pathname));
  await page.locator(".VPNavBarSearch button").click();
  const input = page.locator(".VPLocalSearchBox .search-input");
  for (const path of guides()) {
    const expected = addressOf(path);
    await input.fill(titleOf(path));
    const first = (wanted) =>
      new URL(document.querySelector(".VPLocalSearchBox .result")?.href ?? "about:blank").pathname === wanted;
    await page.waitForFunction(first, expected, { timeout: 10_000 }).catch(async () => {
      faults.push(`a search for "${titleOf(path)}" has ${(await hits())[0]} first, and not ${expected}`);
    });
    for (const hit of await hits()) if (hidden.has(hit)) faults.push(`a search for "${titleOf(path)}" finds ${hit}`);
  }
  for (const [word, guide] of Object.entries(ASKED)) {
    await input.fill(word);
    const wanted = addressOf(`docs/guides/${guide}.md`);
    const isThere = (path) =>
      [...document.querySelectorAll(".VPLocalSearchBox .result")]
        .slice(0, 3)
        .some(({ href }) => new URL(href).pathname === path);
    await page.waitForFunction(isThere, wanted, { timeout: 5_000 }).catch(async () => {
      faults.push(
        `a search for "${word}" has not ${wanted} among its first, but ${(await hits()).slice(0, 3).join(", ")}`,
      );
    });
  }
  for (const word of ["simulation", "forceUnlock"]) {
    await input.fill(word);
    await page.waitForTimeout(1_000);
    const found = await hits();
    if (found.length === 0) faults.push(`search finds nothing for ${word}`);
    for (const hit of found) if (hidden.has(hit)) faults.push(`a search for "${word}" finds ${hit}`);
  }
}

/** Each page lies there as Markdown as well, and llms.txt leads to those of the index; their links lead somewhere. */
async function hasTwins() {
  const textAt = async (path) => {
    const reply = await fetch(`${site}/${path}`);
    return reply.status === 200 ? await reply.text() : undefined;
  };
  const all = new Map();
  for (const path of ["llms.txt", ...STAGED.map(({ path }) => path)]) all.set(path, await textAt(path));
  for (const [path, text] of all) {
    if (text === undefined) faults.push(`${path} is not there as Markdown`);
    for (const [, target] of (text ?? "")
      .replaceAll(/^```[\s\S]*?^```/gm, "")
      .matchAll(/\]\((?!https?:|#|mailto:)([^)#\s]+)/g)) {
      const linked = posix.join(posix.dirname(path), target);
      if (!all.has(linked) && (await textAt(linked)) === undefined) faults.push(`${path} links to ${linked}`);
    }
  }
  for (const { path } of index().flatMap(({ pages }) => pages)) {
    if (!all.get("llms.txt")?.includes(`](${path})`)) faults.push(`llms.txt does not lead to ${path}`);
  }
}
