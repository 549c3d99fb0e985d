import type { Document, Node, Pair, Scalar, YAMLMap } from "yaml";
import { fields, splitList, splitTools, type FieldID, type FieldSpec, type Value } from "./fields";

/** The YAML library, which is loaded on demand. */
export type Yaml = typeof import("yaml");

/** The YAML part of a SKILL.md, from its first byte to the closing line. */
interface Span {
  start: number;
  end: number;
}

/** The parsed fields of a SKILL.md. */
export interface Front extends Span {
  text: string;
  doc: Document.Parsed;
  /** The top-level map, undefined if the YAML is empty. */
  top?: YAMLMap;
}

/** The result of reading a SKILL.md. */
export type Read = { front: Front } | { fault: "none" | "unclosed" | "invalid"; message?: string; line?: number };

/** findFrontmatter finds the YAML as the hub does: between the fence on the first line and the next fence. */
export function findFrontmatter(text: string): Span | "none" | "unclosed" {
  const before = /^\ufeff?(?:[ \t\r]*\n)*/.exec(text)![0].length;
  const first = /^---[ \t\r]*(\n|$)/.exec(text.slice(before));
  if (!first) return "none";
  const start = before + first[0].length;
  const close = /^---[ \t\r]*$/m.exec(text.slice(start));
  return close ? { start, end: start + close.index } : "unclosed";
}

const lineAt = (text: string, offset: number) => text.slice(0, offset).split("\n").length;

/** read parses the fields of a SKILL.md. */
export function read(yaml: Yaml, text: string): Read {
  const span = findFrontmatter(text);
  if (typeof span === "string") return { fault: span };
  const block = text.slice(span.start, span.end);
  const doc = yaml.parseDocument(block, { uniqueKeys: false, prettyErrors: false, logLevel: "silent" });
  const wrong = doc.errors[0];
  if (wrong) return { fault: "invalid", message: wrong.message, line: lineAt(text, span.start + wrong.pos[0]) };
  if (doc.contents && !yaml.isMap(doc.contents)) return { fault: "invalid", line: lineAt(text, span.start) };
  return { front: { ...span, text, doc, top: yaml.isMap(doc.contents) ? doc.contents : undefined } };
}

/** A field's key-value pair and the map that contains it. */
export interface Place {
  pair: Pair<Scalar, Node | null>;
  inside: YAMLMap;
  /** Whether it is under metadata. */
  below: boolean;
}

/**
 * findField locates a field by its spellings, first at the top level, then under metadata. Of duplicates
 * the last one counts.
 */
export function findField(yaml: Yaml, front: Front, field: FieldSpec): Place | undefined {
  const meta = pairOf(yaml, front.top, "metadata")?.value;
  for (const [inside, below] of [
    [front.top, false],
    [yaml.isMap(meta) ? meta : undefined, true],
  ] as const) {
    for (const key of field.keys) {
      const pair = pairOf(yaml, inside, key);
      if (pair && inside) return { pair, inside, below };
    }
  }
  return undefined;
}

export function pairOf(yaml: Yaml, map: YAMLMap | undefined, key: string): Place["pair"] | undefined {
  return map?.items.findLast((p) => yaml.isScalar(p.key) && p.key.value === key) as Place["pair"] | undefined;
}

/** valueOf returns the value of a field, or an empty value. */
export function valueOf(yaml: Yaml, front: Front, id: FieldID): Value {
  const field = fields[id];
  const node = resolved(yaml, front, findField(yaml, front, field)?.pair.value);
  switch (field.kind) {
    case "flag":
      return truth(scalarText(yaml, node), field.off ?? false);
    case "list":
    case "tools":
      return items(yaml, front, node, field.kind);
    case "map":
      return yaml.isMap(node) ? asDocument(yaml, node) : "";
    default:
      return yaml.isScalar(node) ? scalarText(yaml, node).trim() : node ? yaml.stringify(node).trim() : "";
  }
}

function resolved(yaml: Yaml, front: Front, node: Node | null | undefined): Node | undefined {
  return (yaml.isAlias(node) ? node.resolve(front.doc) : node) ?? undefined;
}

/** scalarText returns a scalar as written: 1.10 stays 1.10. */
function scalarText(yaml: Yaml, node: Node | undefined): string {
  if (!yaml.isScalar(node) || node.value === null) return "";
  return node.type === "PLAIN" && node.source !== undefined ? node.source : String(node.value);
}

function truth(text: string, off: boolean): boolean {
  const word = text.trim().toLowerCase();
  if (["true", "yes", "on", "1"].includes(word)) return true;
  return ["false", "no", "off", "0"].includes(word) ? false : off;
}

function items(yaml: Yaml, front: Front, node: Node | undefined, kind: "list" | "tools"): string[] {
  if (yaml.isSeq(node)) {
    const texts = node.items.map((i) => scalarText(yaml, resolved(yaml, front, i as Node)).trim()).filter(Boolean);
    return kind === "tools" ? texts.flatMap(splitTools) : texts;
  }
  const text = scalarText(yaml, node);
  return kind === "tools" ? splitTools(text) : splitList(text);
}

/** asDocument returns a node as a YAML document. */
function asDocument(yaml: Yaml, node: Node): string {
  const doc = new yaml.Document();
  doc.contents = node;
  return doc.toString({ lineWidth: 0 }).trimEnd();
}

/** otherFields returns the names of the fields that are not in the form. */
export function otherFields(yaml: Yaml, front: Front): string[] {
  const known = new Set(["metadata", ...Object.values(fields).flatMap((f) => f.keys)]);
  return (front.top?.items ?? [])
    .map((p) => (yaml.isScalar(p.key) ? String(p.key.value) : ""))
    .filter((k) => k && !known.has(k));
}
