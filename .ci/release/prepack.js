/** Refuses to pack the repository itself: its pages link to files that the package does not have. A release packs a staged copy. */
if (/^(pack|publish)$/.test(process.env.npm_command ?? "")) {
  console.error(
    "A package of this folder has dead links: make it with `npm run release -- minor`, or try that with `--dry-run`",
  );
  process.exitCode = 1;
}
