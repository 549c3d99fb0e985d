/**
 * Stands for the package of that name, which markdown-it asks what a name as &eacute; means:
 * the browser has the table already. What is no entity as a whole stays as it is.
 */
export function decodeHTMLStrict(entity: string): string {
  const before = known.get(entity);
  if (before !== undefined) return before;
  const means = ask(entity);
  if (known.size < most) known.set(entity, means);
  return means;
}

const known = new Map<string, string>();
const most = 3000; // there are 2125 names

function ask(entity: string): string {
  if (!/^&[a-z0-9]+;$/i.test(entity)) return entity;
  const text = new DOMParser().parseFromString(`<title>${entity}</title>`, "text/html").querySelector("title")!.textContent ?? "";
  return text.endsWith(";") && text !== ";" ? entity : text; // of &copyx; the browser would take &copy
}
