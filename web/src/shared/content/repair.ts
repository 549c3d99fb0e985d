/**
 * closeMarks closes the open marks of a growing text, so that nothing flickers: emphasis, code, links,
 * underlined headings and table heads.
 */
export function closeMarks(text: string): string {
  const at = text.lastIndexOf("\n\n") + 1;
  let end = text.slice(at).replace(/(\n[ \t>]*)[|:=\- ]*[|:=-]$/, "");
  end = end.replace(/!\[[^\]\n]*(\]\([^)\n]*)?$/, "").replace(/\[([^\]\n]*)\]\([^)\n]*$/, "$1");
  return text.slice(0, at) + closed(end);
}

function closed(text: string): string {
  const ticks = text.split("`").length - 1;
  if (ticks % 2) return text.endsWith("`") ? text.slice(0, -1) : text + "`";
  const plain = text
    .replace(/`[^`]*`|\$\$[^]+?\$\$|\$[^\s$][^\n$]*\$|\\\([^]+?\\\)|\\\[[^]+?\\\]/g, (whole) =>
      "x".repeat(whole.length),
    )
    .replace(/\\./g, "xx");
  let bare = text.replace(/(\*{1,3}|~~)$/, (marks) => (opens(plain, marks) ? "" : marks));
  if (bare !== text) return closed(bare.trimEnd());
  for (const marks of ["*", "**", "~~"]) if (opens(plain, marks)) bare = bare.trimEnd() + marks;
  return bare;
}

/** opens reports whether a mark is still open. */
function opens(text: string, marks: string): boolean {
  if (marks === "***") return opens(text, "**");
  const single = marks === "*" ? /(?<!\*)\*(?!\*)/g : marks === "**" ? /\*\*/g : /~~/g;
  let open = false;
  for (const found of text.matchAll(single)) {
    const after = text[found.index + marks.length];
    const starts = !open && after !== " " && after !== "\n";
    if (open || starts) open = !open;
  }
  return open;
}
