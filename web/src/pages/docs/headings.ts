import { slug } from "../../shared/content/links";

/** headings returns the anchors of the headings of a Markdown text, in order. */
export function headings(text: string): string[] {
  const out: string[] = [];
  let fence = "";
  for (const line of text.split("\n")) {
    const mark = /^\s*(```+|~~~+)/.exec(line)?.[1] ?? "";
    if (mark && (!fence || line.trim() === fence)) fence = fence ? "" : mark;
    else if (!fence && /^#{1,6}\s/.test(line)) out.push(slug(line.replace(/^#+\s+/, "").replace(/[`*]/g, "")));
  }
  return out;
}
