import { overview } from "../llms.js";
import { index } from "../pages.js";

/** The first page of the site: what the library is, its first program, and where to go. @returns its front matter and its text. */
export function startPage() {
  const { name, paragraph, program } = overview();
  const matter = {
    layout: "home",
    hero: {
      name,
      tagline: paragraph,
      actions: [
        { theme: "brand", text: "Get started", link: "/docs/guides/getting-started" },
        { theme: "alt", text: "Overview", link: "/README" },
        { theme: "alt", text: "Which page has my answer?", link: "/docs/" },
      ],
    },
  };
  const groups = index().map((group) => `<div>\n\n### ${group.heading}\n\n${listOf(group)}\n\n</div>`);
  return { matter, text: `${program}\n\n## Where to go\n\n<div class="groups">\n\n${groups.join("\n\n")}\n\n</div>\n` };
}

function listOf({ pages }) {
  return pages.map(({ title, path }) => `- [${title}](${path})`).join("\n");
}
