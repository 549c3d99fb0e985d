/** The target of a link in hostile text, after validation. */
type LinkTarget =
  | { to: "out"; href: string }
  /** A file relative to the root of the text, without "..". */
  | { to: "file"; path: string }
  /** A heading of the same text. */
  | { to: "place"; slug: string }
  | undefined;

const outward = new Set(["http:", "https:", "mailto:"]);

/** linkTarget returns the target of a link, or undefined for a forbidden one. `base` is the folder of the text. */
export function linkTarget(href: string, base = ""): LinkTarget {
  const plain = href.replace(/[\u0000-\u0020\u007f-\u009f]/g, ""); // as browsers normalize addresses
  if (/^[a-z][a-z0-9+.-]*:/i.test(plain)) {
    const url = URL.canParse(plain) ? new URL(plain) : undefined;
    return url && outward.has(url.protocol) && !url.username && !url.password
      ? { to: "out", href: url.href }
      : undefined;
  }
  if (plain.startsWith("#")) return plain.length > 1 ? { to: "place", slug: decoded(plain.slice(1)) ?? "" } : undefined;
  const path = inside(decoded(href.trim().replace(/[?#].*$/s, "")) ?? "", base);
  return path ? { to: "file", path } : undefined;
}

/** inside resolves a relative path, or returns undefined if it leaves the root. */
function inside(path: string, base: string): string | undefined {
  if (!path || path.startsWith("/") || /[\\\u0000-\u001f]/.test(path)) return undefined;
  const steps: string[] = [];
  for (const step of [...base.split("/"), ...path.split("/")]) {
    if (step === "..") {
      if (!steps.length) return undefined;
      steps.pop();
    } else if (step && step !== ".") steps.push(step);
  }
  return steps.join("/") || undefined;
}

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

/** sameOriginURL returns an address of this origin, or undefined. Nothing else is loaded or linked as a file. */
export function sameOriginURL(address: string | undefined): string | undefined {
  if (!address || !URL.canParse(address, location.href)) return undefined;
  const url = new URL(address, location.href);
  return url.origin === location.origin && (url.protocol === "blob:" || url.protocol === location.protocol)
    ? url.href
    : undefined;
}

/** slug returns the anchor of a heading. */
export const slug = (heading: string) =>
  heading
    .trim()
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, "")
    .replace(/\s/g, "-");
