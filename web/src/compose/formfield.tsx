import { useRef } from "preact/hooks";
import { AreaField, Check, TextField } from "../ui";
import { fields, splitList, splitTools, type FieldID, type FieldSpec, type Value } from "./fields";
import type { Yaml } from "./frontmatter";
import { useTyped } from "./typed";
import { w } from "./words";

interface Props {
  id: FieldID;
  value: Value;
  put: (value: Value) => void;
  yaml: Yaml;
  /** Whether it only shows what was there. */
  off: boolean;
}

/** One field of the form. */
export function FormField({ id, value, put, yaml, off }: Props) {
  const t = w();
  if (typeof value === "boolean") return <Check label={t.labels[id]!} hint={t.hints[id] || undefined} checked={value} onCheck={put} disabled={off} />;
  return <Typed id={id} value={value} put={put} yaml={yaml} off={off} />;
}

function Typed({ id, value, put, yaml, off }: Props & { value: string | string[] }) {
  const field = fields[id];
  // A text that cannot be read leaves the field as it was.
  const [text, type, wrong] = useTyped<Value>(value, (v) => shown(field, v), (s) => meant(yaml, field, s), put);
  const changed = useRef(type);
  changed.current = off ? () => undefined : type;
  const n = field.max ? [...text].length : 0;
  const hint = (
    <>
      {w().hints[id]}
      {field.max && <span class={n > field.max ? "compose-count compose-bad" : "compose-count"}> · {w().counter(n, field.max)}{n > field.max && ` — ${w().over(n - field.max)}`}</span>}
    </>
  );
  const named = { label: w().labels[id]!, hint: w().hints[id] || field.max ? hint : undefined, value: text, onText: (s: string) => changed.current(s), error: wrong ? w().badMap : undefined };
  if (field.kind === "text" || field.kind === "map" || text.includes("\n")) return <Area {...named} off={off} mono={field.kind === "map"} rows={field.kind === "map" ? 3 : id === "description" ? 5 : 3} />;
  return <TextField {...named} disabled={off} spellcheck={false} autocomplete="off" />;
}

/** An area that a fieldset switches off, as the shared field has no such state of its own. */
function Area({ off, mono, ...rest }: { off: boolean; mono: boolean; rows: number; label: string; hint: preact.ComponentChildren; value: string; onText: (s: string) => void; error?: string }) {
  return <fieldset class="compose-off" disabled={off}><AreaField {...rest} class={mono ? "mono" : undefined} /></fieldset>;
}

const shown = (field: FieldSpec, value: Value): string => (Array.isArray(value) ? value.join(field.kind === "tools" ? " " : ", ") : String(value));

/** What a text in a field stands for; undefined where it is not what the field takes. */
function meant(yaml: Yaml, field: FieldSpec, text: string): Value | undefined {
  switch (field.kind) {
    case "list":
      return splitList(text);
    case "tools":
      return splitTools(text);
    case "map":
      return map(yaml, text);
    default:
      return text.trim();
  }
}

function map(yaml: Yaml, text: string): string | undefined {
  if (!text.trim()) return "";
  const doc = yaml.parseDocument(text, { logLevel: "silent" });
  if (doc.errors.length || !yaml.isMap(doc.contents)) return undefined;
  return doc.toString({ lineWidth: 0 }).trimEnd();
}
