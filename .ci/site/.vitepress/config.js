import { readFileSync } from "node:fs";
import { withMermaid } from "vitepress-plugin-mermaid";

/** A link to a heading is GitHub's: lower case, words joined by hyphens, and nothing else. */
function slugify(heading) {
  return heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, "")
    .trim()
    .replaceAll(/\s/g, "-");
}

/** The index of docs/, as it is there: a group for each heading, and a page for each row. */
function sidebar() {
  const [, ...groups] = readFileSync("docs/README.md", "utf8").split("\n## ");
  return groups.map((group) => ({
    text: group.split("\n")[0],
    collapsed: false,
    items: [...group.matchAll(/^\| \[.+?\]\(([\w.-]+\.md)\) \| (.+) \|$/gm)].map(([, link, text]) => ({
      text,
      link: `/docs/${link.replace(/\.md$/, "")}`,
    })),
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
