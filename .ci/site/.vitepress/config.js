import { readFileSync } from "node:fs";
import { withMermaid } from "vitepress-plugin-mermaid";
import { DESIGN, index } from "../../pages.js";
import { repositoryLinks } from "../repository-links.js";

const manifest = JSON.parse(readFileSync("package.json", "utf8"));

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

/** Each cell of a table knows the head of its column, which a phone shows beside it. How it is aligned is left to the style sheet. */
function withHeads(markdown) {
  markdown.core.ruler.push("heads", ({ tokens }) => {
    let heads = [];
    let column = 0;
    for (const token of tokens.filter(({ attrs }) => attrs?.join() === "style,text-align:right")) {
      token.attrs = [["class", "numbers"]];
    }
    for (const [at, { type }] of tokens.entries()) {
      if (type === "table_open") heads = [];
      if (type === "tr_open") column = 0;
      if (type === "th_open") heads.push(tokens[at + 1].children.map(({ content }) => content).join(""));
      if (type !== "td_open") continue;
      if (heads[column]) tokens[at].attrSet("data-head", heads[column]);
      column += 1;
    }
  });
}

export default withMermaid({
  title: manifest.name,
  description: manifest.description,
  srcDir: "../../temp/site/pages",
  outDir: "../../temp/site/built",
  cacheDir: "../../temp/site/cache",
  head: [["link", { rel: "icon", type: "image/svg+xml", href: "/favicon.svg" }]],
  transformHead: ({ pageData }) => [
    ["link", { rel: "alternate", type: "text/markdown", href: `/${pageData.relativePath}` }],
  ],
  themeConfig: {
    search: {
      provider: "local",
      options: {
        miniSearch: {
          searchOptions: {
            // A page whose title has the word comes before one that has it in a heading, and the changelog last.
            boostDocument: (id, _term, { titles }) =>
              (titles.length === 0 ? 4 : 1) * (id.startsWith("/CHANGELOG") ? 0.1 : 1),
          },
        },
      },
    },
    sidebar: sidebar(),
    nav: [
      { text: "Getting started", link: "/docs/guides/getting-started" },
      { text: "Documentation", link: "/docs/" },
      { text: "API", link: "/api/index.html", target: "_self" },
    ],
    ...repositoryLinks(manifest),
  },
  markdown: {
    anchor: { slugify },
    headers: { slugify },
    languageAlias: { mjs: "js", crontab: "sh" },
    config: withHeads,
  },
  // A diagram keeps its own size: made to fit the page, its letters were half as large as those of the text.
  mermaid: {
    themeCSS: ".note { fill: var(--vp-c-bg-soft) } .noteText, .noteText > tspan { fill: var(--vp-c-text-1) }",
    sequence: {
      useMaxWidth: false,
      wrap: true,
      width: 130,
      actorMargin: 20,
      diagramMarginX: 10,
      mirrorActors: false,
      actorFontSize: 14,
      messageFontSize: 14,
      noteFontSize: 14,
    },
  },
  // The API reference is made by typedoc, and laid beside the pages.
  ignoreDeadLinks: [/^\/api\//],
});
