import type { Schema } from "../../shared/api/client";

/** apply applies an edit of the hub to a text. Lines and columns start at 1, columns count characters. */
export function apply(text: string, edit: Schema["Edit"]): string {
  return (
    text.slice(0, offset(text, edit.startLine, edit.startColumn)) +
    edit.text +
    text.slice(offset(text, edit.endLine, edit.endColumn))
  );
}

function offset(text: string, line: number, column: number): number {
  let at = 0;
  for (; line > 1; line--) {
    const next = text.indexOf("\n", at);
    if (next < 0) return text.length;
    at = next + 1;
  }
  const end = text.indexOf("\n", at);
  const all = text.slice(at, end < 0 ? text.length : end + 1);
  return at + [...all].slice(0, column - 1).join("").length;
}
