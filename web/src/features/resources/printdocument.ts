/** A document as text, with the path of each line, to show diagnostics at their fields. */
interface Printed {
  text: string;
  /** For each line, the path of the value that starts there, such as spec.skills[0]. */
  paths: string[];
}

/** printJSON prints a value as indented JSON, with the paths of its lines. */
export function printJSON(value: unknown): Printed {
  const lines: string[] = [];
  const paths: string[] = [];
  const put = (path: string, line: string) => {
    lines.push(line);
    paths.push(path);
  };
  const write = (v: unknown, path: string, indent: string, before: string, after: string) => {
    if (typeof v !== "object" || v === null) return put(path, before + JSON.stringify(v ?? null) + after);
    const list = Array.isArray(v);
    const entries: [string, unknown][] = list
      ? v.map((x, i) => [String(i), x])
      : Object.entries(v).filter(([, x]) => x !== undefined);
    if (!entries.length) return put(path, before + (list ? "[]" : "{}") + after);
    put(path, before + (list ? "[" : "{"));
    entries.forEach(([key, x], i) => {
      const inner = indent + "  ";
      const below = list ? `${path}[${key}]` : path ? `${path}.${key}` : key;
      write(x, below, inner, inner + (list ? "" : JSON.stringify(key) + ": "), i < entries.length - 1 ? "," : "");
    });
    put(path, indent + (list ? "]" : "}") + after);
  };
  write(value, "", "", "", "");
  return { text: lines.join("\n") + "\n", paths };
}

const plain = /^[A-Za-z_./@][A-Za-z0-9_./@ ()+-]*$/;
const meant = /^(true|false|yes|no|on|off|null|y|n)$/i;

/** scalar prints a string as a YAML scalar, quoted if it could be read as another type. */
function scalar(v: unknown): string {
  if (typeof v !== "string") return JSON.stringify(v ?? null);
  return plain.test(v) && !meant.test(v) && v === v.trim() ? v : JSON.stringify(v);
}

/** printYAML prints a value as YAML, with multi-line strings as blocks. */
export function printYAML(value: unknown, indent = ""): string {
  if (Array.isArray(value)) return value.length ? value.map((v) => item(v, indent)).join("") : indent + "[]\n";
  if (typeof value === "object" && value !== null) {
    const entries = Object.entries(value).filter(([, v]) => v !== undefined);
    return entries.length
      ? entries.map(([k, v]) => indent + scalar(k) + ":" + below(v, indent)).join("")
      : indent + "{}\n";
  }
  return indent + scalar(value) + "\n";
}

/** below prints the value after the colon of a key. */
function below(v: unknown, indent: string): string {
  if (typeof v === "object" && v !== null) {
    const empty = Array.isArray(v) ? !v.length : !Object.values(v).some((x) => x !== undefined);
    return empty ? ` ${Array.isArray(v) ? "[]" : "{}"}\n` : "\n" + printYAML(v, indent + "  ");
  }
  if (typeof v === "string" && asBlock(v)) {
    const keep = v.endsWith("\n\n") || v === "\n" ? "+" : v.endsWith("\n") ? "" : "-";
    const lines = v.replace(/\n$/, "").split("\n");
    return ` |${keep}\n` + lines.map((l) => (l ? indent + "  " + l : "") + "\n").join("");
  }
  return ` ${scalar(v)}\n`;
}

/**
 * asBlock reports whether a string can be a YAML block: several lines without characters that need
 * escapes.
 */
const asBlock = (v: string) =>
  v.includes("\n") && !/[\r\u0000-\u0008\u000b-\u001f\u007f-\u009f\u2028\u2029\ufeff]/.test(v) && !/^\s/.test(v);

function item(v: unknown, indent: string): string {
  if (typeof v === "object" && v !== null && !Array.isArray(v) && Object.values(v).some((x) => x !== undefined)) {
    return indent + "- " + printYAML(v, indent + "  ").slice(indent.length + 2);
  }
  return indent + "-" + below(v, indent);
}
