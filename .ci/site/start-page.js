import { overview } from "../llms.js";
import { DESIGN, index } from "../pages.js";

/**
 * The first page of the site: what the library is, how to install it, its first program, what it is not for, and where to go.
 * @returns its front matter and its text.
 */
export function startPage() {
  const { name, paragraph, install, program, wrong } = overview();
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
  const guides = index().filter(({ heading }) => heading !== DESIGN);
  const groups = guides.map((group) => `<div>\n\n### ${group.heading}\n\n${listOf(group)}\n\n</div>`);
  const rest = `## Where to go\n\n<div class="groups">\n\n${groups.join("\n\n")}\n\n</div>\n`;
  return { matter, text: [install, program, wrong, rest].join("\n\n") };
}

function listOf({ pages }) {
  return pages.map(({ title, path }) => `- [${title}](${path})`).join("\n");
}
