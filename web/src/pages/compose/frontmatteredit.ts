import type { Node, Scalar } from "yaml";
import { fields, order, type FieldID, type FieldSpec, type Value } from "./fields";
import { findField, pairOf, read, valueOf, type Front, type Place, type Yaml } from "./frontmatter";

/**
 * setField sets a field of a SKILL.md. It changes only the lines of that field: comments, order,
 * style and unknown fields stay. A text with invalid YAML stays unchanged.
 */
export function setField(yaml: Yaml, text: string, id: FieldID, value: Value): string {
  const eol = text.includes("\r\n") ? "\r\n" : "\n";
  let from = read(yaml, text);
  if ("fault" in from && from.fault === "none") {
    text = `---${eol}---${eol}${eol}${text}`;
    from = read(yaml, text);
  }
  if ("fault" in from) return text;
  const field = fields[id];
  const change = new Change(yaml, from.front, field, value, eol);
  const changed = change.byLines();
  if (changed !== undefined && change.holds(changed)) return changed;
  try {
    return change.byWriting();
  } catch {
    return text; // another field has an alias of this one, so the user must edit the text
  }
}

const isNothing = (field: FieldSpec, value: Value) =>
  typeof value === "boolean" ? value === field.off : value.length === 0;

class Change {
  private place: Place | undefined;

  constructor(
    private yaml: Yaml,
    private front: Front,
    private field: FieldSpec,
    private value: Value,
    private eol: string,
  ) {
    this.place = findField(yaml, front, field);
  }

  /**
   * byLines replaces the lines of the field. It returns undefined if the field shares its lines
   * with others.
   */
  byLines(): string | undefined {
    if (isNothing(this.field, this.value)) return this.place ? this.without(this.place) : this.front.text;
    return this.place ? this.replaced(this.place) : this.added();
  }

  /** holds reports whether a text has the new value, and everything else is unchanged. */
  holds(text: string): boolean {
    const now = read(this.yaml, text);
    if ("fault" in now) return false;
    const same = JSON.stringify(valueOf(this.yaml, now.front, this.field.id)) === JSON.stringify(this.value);
    return (
      same &&
      this.rest(now.front) === this.rest(this.front) &&
      text.slice(now.front.end) === this.front.text.slice(this.front.end)
    );
  }

  /** rest returns all other fields, to compare. */
  private rest(front: Front): string {
    const all = (front.doc.toJS() ?? {}) as Record<string, unknown>;
    const meta = all.metadata;
    const top = Object.entries(all).filter(([k]) => k !== "metadata" && !this.field.keys.includes(k));
    const below =
      meta && typeof meta === "object"
        ? Object.entries(meta).filter(([k]) => !this.field.keys.includes(k))
        : (meta ?? []);
    return JSON.stringify([top.sort(([a], [b]) => (a < b ? -1 : 1)), below]);
  }

  /** byWriting prints the whole YAML again. It keeps comments and order, but not the spacing. */
  byWriting(): string {
    const { doc, text, start, end } = this.front;
    const key = this.place ? String(this.place.pair.key.value) : this.field.keys[0]!;
    const path = this.below() ? ["metadata", key] : [key];
    const old = this.place?.pair.value;
    if (isNothing(this.field, this.value)) doc.deleteIn(path);
    else {
      if (this.below() && !this.yaml.isMap(doc.get("metadata"))) doc.set("metadata", doc.createNode({}));
      doc.setIn(path, Object.assign(this.node(), { comment: old?.comment, commentBefore: old?.commentBefore }));
    }
    const block = doc.contents ? doc.toString({ lineWidth: 0 }).replace(/\n/g, this.eol) : "";
    return text.slice(0, start) + block + text.slice(end);
  }

  /** below reports whether the field belongs under metadata. Some files have metadata as a string. */
  private below(): boolean {
    if (this.place) return this.place.below;
    const meta = pairOf(this.yaml, this.front.top, "metadata")?.value;
    return (
      this.field.home === "metadata" &&
      (!meta || this.yaml.isMap(meta) || (this.yaml.isScalar(meta) && meta.value === null))
    );
  }

  private replaced({ pair, inside }: Place): string | undefined {
    const value = pair.value as (Node & { anchor?: string; type?: string }) | null;
    if (!value?.range || !pair.key.range || inside.flow || value.anchor) return undefined;
    if (value.comment && value.type?.startsWith("BLOCK")) return undefined; // the comment is part of the replaced text
    const { text, start } = this.front;
    const from = start + pair.key.range[0];
    if (text.slice(start + pair.key.range[1], start + value.range[0]).includes("#")) return undefined;
    return text.slice(0, from) + this.lines(String(pair.key.value), this.column(from)) + text.slice(this.endOf(pair));
  }

  private without({ pair, inside, below }: Place): string | undefined {
    const { text, start } = this.front;
    if (!pair.key.range || inside.flow) return undefined;
    if (below && inside.items.length === 1) {
      const meta = pairOf(this.yaml, this.front.top, "metadata")!;
      return this.without({ pair: meta, inside: this.front.top!, below: false });
    }
    const from = start + pair.key.range[0];
    return text.slice(0, from - this.column(from)) + text.slice(this.lineAfter(this.endOf(pair)));
  }

  private added(): string | undefined {
    const { text, top, start } = this.front;
    if (top?.flow) return undefined;
    const key = this.field.keys[0]!;
    if (!this.below()) return this.insert(this.after(key), this.lines(key, 0));
    const meta = pairOf(this.yaml, top, "metadata");
    if (!meta) return this.insert(this.after("metadata"), `metadata:${this.eol}  ${this.lines(key, 2)}`);
    const value = meta.value;
    if (!this.yaml.isMap(value) || value.flow || !value.items.length) return undefined;
    const first = start + (value.items[0]!.key as Scalar).range![0];
    const indent = this.column(first);
    if (text[first - indent - 1] !== "\n") return undefined;
    return this.insert(
      this.lineAfter(this.endOf(value.items.at(-1) as Place["pair"])),
      " ".repeat(indent) + this.lines(key, indent),
    );
  }

  private insert(at: number, lines: string): string {
    const { text } = this.front;
    return text.slice(0, at) + lines + this.eol + text.slice(at);
  }

  /** after returns the position of a new top-level field by the field order. */
  private after(key: string): number {
    const at = order.indexOf(key);
    const before = order.slice(0, at < 0 ? order.length : at).reverse();
    for (const name of before) {
      const pair = pairOf(this.yaml, this.front.top, name);
      if (pair) return this.lineAfter(this.endOf(pair));
    }
    return at < 0 || key === "metadata" ? this.front.end : this.front.start;
  }

  /** endOf returns the end of a pair without trailing blank lines. */
  private endOf(pair: Place["pair"]): number {
    const { text, start } = this.front;
    let end = start + (pair.value?.range ? Math.max(pair.value.range[1], pair.key.range![1]) : pair.key.range![1] + 1);
    while (/\s/.test(text[end - 1] ?? "x")) end--;
    return end;
  }

  private lineAfter(offset: number): number {
    const next = this.front.text.indexOf("\n", offset);
    return next < 0 ? this.front.text.length : next + 1;
  }

  private column(offset: number): number {
    return offset - (this.front.text.lastIndexOf("\n", offset - 1) + 1);
  }

  /** lines prints the field, with its further lines indented. */
  private lines(key: string, indent: number): string {
    const node = this.node();
    let text = this.write(key, node);
    if (text.includes("---") && this.yaml.isScalar(node)) {
      // some programs would read it as the end of the fields
      node.type = "QUOTE_DOUBLE";
      text = this.write(key, node).replaceAll("--", "-\\u002d");
    }
    return text.replaceAll("\n", this.eol + " ".repeat(indent));
  }

  private write(key: string, node: Node): string {
    const doc = new this.yaml.Document({});
    doc.set(key, node);
    const folded = this.yaml.isScalar(node) && node.type === "BLOCK_FOLDED";
    return doc.toString({ lineWidth: folded ? 80 : 0, flowCollectionPadding: false }).trimEnd();
  }

  /** node returns the value in its earlier style. */
  private node(): Node {
    const { yaml, value } = this;
    const old = this.place?.pair.value;
    if (this.field.kind === "map") return yaml.parseDocument(value as string).contents as Node;
    if (Array.isArray(value) && yaml.isSeq(old)) {
      const seq = new yaml.YAMLSeq();
      seq.flow = old.flow;
      seq.items = value.map((v) => old.items.find((o) => yaml.isScalar(o) && o.value === v) ?? new yaml.Scalar(v));
      return seq;
    }
    if (typeof value === "boolean") return new yaml.Scalar(this.below() ? String(value) : value);
    const scalar = new yaml.Scalar(Array.isArray(value) ? value.join(this.field.kind === "tools" ? " " : ", ") : value);
    if (yaml.isScalar(old) && old.type && old.type !== "PLAIN" && !this.hadToQuote(old)) scalar.type = old.type;
    if (scalar.type?.startsWith("BLOCK") && /[|>][0-9]?\+?\s*$/.test(this.header())) scalar.value += "\n";
    return scalar as Node;
  }

  /**
   * hadToQuote reports whether the earlier value needed its quotes, such as "a: b", so that they
   * were not a choice.
   */
  private hadToQuote(old: Scalar): boolean {
    return (
      !!old.type?.startsWith("QUOTE") &&
      this.yaml.stringify(String(old.value), { lineWidth: 0 }).trimEnd() !== String(old.value)
    );
  }

  /** header returns the start of the line of the value. */
  private header(): string {
    const at = this.front.start + (this.place?.pair.key.range?.[1] ?? 0);
    return this.front.text.slice(at, this.lineAfter(at));
  }
}
