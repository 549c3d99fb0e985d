/** What a preview leaves out: policies do not keep it from asking for names, connections or other pages. */
const removed = "link, base, meta[http-equiv], iframe, frame, object, embed, portal, fencedframe";

/** The policy of a document without running scripts. It adds to the policy of the page. */
const policy =
  "default-src 'none'; img-src data: blob:; style-src 'unsafe-inline'; font-src data:; media-src data: blob:";

/**
 * still returns an HTML document for a preview, and whether it has scripts. The parser loads nothing
 * and runs nothing.
 */
export function still(text: string): { page: string; scripts: boolean } {
  const parsed = new DOMParser().parseFromString(text, "text/html");
  const scripts = clean(parsed);
  const meta = parsed.createElement("meta");
  meta.httpEquiv = "Content-Security-Policy";
  // Scripts may run where the hub's policy for previews permits them, and only there.
  meta.content = `${policy}; script-src 'unsafe-inline'`;
  parsed.head.prepend(meta);
  return { page: `<!doctype html>\n${parsed.documentElement.outerHTML}`, scripts };
}

/** clean removes elements, also from templates, and reports whether there are scripts. */
function clean(root: ParentNode): boolean {
  for (const e of root.querySelectorAll(removed)) e.remove();
  for (const e of root.querySelectorAll("a, area"))
    for (const a of [...e.attributes]) if (a.name === "ping" || /(^|:)href$/.test(a.name)) e.removeAttribute(a.name);
  let scripts = !!root.querySelector("script");
  for (const e of root.querySelectorAll("*"))
    scripts ||= [...e.attributes].some((a) => /^on/i.test(a.name) || /^\s*javascript:/i.test(a.value));
  for (const t of root.querySelectorAll("template")) scripts = clean(t.content) || scripts;
  return scripts;
}
