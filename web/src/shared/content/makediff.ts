import { structuredPatch } from "diff";

/** unified compares two texts by lines. Each hunk has up to three unchanged lines around it. */
export function unified(a: string, b: string): string {
  const { hunks } = structuredPatch("", "", endLine(a), endLine(b), "", "", { context: 3 });
  return hunks
    .map((h) => `@@ -${h.oldStart},${h.oldLines} +${h.newStart},${h.newLines} @@\n${h.lines.join("\n")}\n`)
    .join("");
}

/** endLine adds a last line break, so that its absence is not a difference. */
const endLine = (text: string): string => (text === "" || text.endsWith("\n") ? text : `${text}\n`);
