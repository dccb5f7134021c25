import { withMermaid } from "vitepress-plugin-mermaid";
import { DESIGN, index } from "../../pages.js";

/** A link to a heading is GitHub's: lower case, words joined by hyphens, and nothing else. */
function slugify(heading) {
  return heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, "")
    .trim()
    .replaceAll(/\s/g, "-");
}

/** The index of docs/: a group for each heading, with the titles of its pages. */
function sidebar() {
  return index().map(({ heading, pages }) => ({
    text: heading,
    collapsed: heading === DESIGN,
    items: pages.map(({ title, path }) => ({ text: title, link: `/${path.replace(/\.md$/, "")}` })),
  }));
}

export default withMermaid({
  title: "dynamutex",
  description: "A distributed mutex on DynamoDB",
  srcDir: "../../temp/site/pages",
  outDir: "../../temp/site/built",
  cacheDir: "../../temp/site/cache",
  themeConfig: {
    search: { provider: "local" },
    sidebar: sidebar(),
    nav: [
      { text: "Getting started", link: "/docs/getting-started" },
      { text: "Documentation", link: "/docs/" },
      { text: "API", link: "/api/index.html", target: "_self" },
    ],
  },
  markdown: { anchor: { slugify }, headers: { slugify }, languageAlias: { mjs: "js", crontab: "sh" } },
  // The API reference is made by typedoc, and laid beside the pages.
  ignoreDeadLinks: [/^\/api\//],
});
