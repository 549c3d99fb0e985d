/**
 * decodeHTMLStrict decodes an entity such as &eacute;. It replaces the package of that name for
 * markdown-it, because the browser has the table already. Anything else stays unchanged.
 */
export function decodeHTMLStrict(entity: string): string {
  const before = known.get(entity);
  if (before !== undefined) return before;
  const means = ask(entity);
  if (known.size < most) known.set(entity, means);
  return means;
}

const known = new Map<string, string>();
const most = 3000; // HTML has 2125 names

function ask(entity: string): string {
  if (!/^&[a-z0-9]+;$/i.test(entity)) return entity;
  const text =
    new DOMParser().parseFromString(`<title>${entity}</title>`, "text/html").querySelector("title")!.textContent ?? "";
  return text.endsWith(";") && text !== ";" ? entity : text; // the browser would decode the &copy in &copyx;
}
