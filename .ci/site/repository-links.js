/** What the site says of the repository, where package.json names one: its address, and where each page is edited. */
export function repositoryLinks({ repository }) {
  if (repository?.url === undefined) return {};
  const link = repository.url.replace(/^git\+/, "").replace(/\.git$/, "");
  return {
    editLink: { pattern: `${link}/edit/main/:path`, text: "Edit this page" },
    socialLinks: [{ icon: "github", link }],
  };
}
