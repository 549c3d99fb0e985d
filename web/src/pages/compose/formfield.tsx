import { useRef } from "preact/hooks";
import { findMsg, msg } from "../../shared/i18n/messages";
import { AreaField, Check, TextField } from "../../shared/ui";
import { fields, splitList, splitTools, type FieldID, type FieldSpec, type Value } from "./fields";
import type { Yaml } from "./frontmatter";
import { useTyped } from "./typedtext";

interface Props {
  id: FieldID;
  value: Value;
  put: (value: Value) => void;
  yaml: Yaml;
  /** Whether the field is read-only. */
  off: boolean;
}

/** FormField edits one field. */
export function FormField({ id, value, put, yaml, off }: Props) {
  if (typeof value === "boolean")
    return (
      <Check
        label={findMsg("compose.labels", id)!}
        hint={findMsg("compose.hints", id) || undefined}
        checked={value}
        onCheck={put}
        disabled={off}
      />
    );
  return <Typed id={id} value={value} put={put} yaml={yaml} off={off} />;
}

function Typed({ id, value, put, yaml, off }: Props & { value: string | string[] }) {
  const field = fields[id];
  // Invalid text leaves the field unchanged.
  const [text, type, wrong] = useTyped<Value>(
    value,
    (v) => shown(field, v),
    (s) => meant(yaml, field, s),
    put,
  );
  const changed = useRef(type);
  changed.current = off ? () => undefined : type;
  const n = field.max ? [...text].length : 0;
  const hint = (
    <>
      {findMsg("compose.hints", id)}
      {field.max && (
        <span class={n > field.max ? "compose-count compose-bad" : "compose-count"}>
          {" "}
          · {msg("compose.counter", { n, max: field.max })}
          {n > field.max && ` — ${msg("compose.over", { count: n - field.max })}`}
        </span>
      )}
    </>
  );
  const named = {
    label: findMsg("compose.labels", id)!,
    hint: findMsg("compose.hints", id) || field.max ? hint : undefined,
    value: text,
    onText: (s: string) => changed.current(s),
    error: wrong ? msg("compose.badMap") : undefined,
  };
  if (field.kind === "text" || field.kind === "map" || text.includes("\n"))
    return (
      <Area
        {...named}
        off={off}
        mono={field.kind === "map"}
        rows={field.kind === "map" ? 3 : id === "description" ? 5 : 3}
      />
    );
  return <TextField {...named} disabled={off} spellcheck={false} autocomplete="off" />;
}

/** Area is a text area that a fieldset can disable. The shared field cannot be disabled. */
function Area({
  off,
  mono,
  ...rest
}: {
  off: boolean;
  mono: boolean;
  rows: number;
  label: string;
  hint: preact.ComponentChildren;
  value: string;
  onText: (s: string) => void;
  error?: string;
}) {
  return (
    <fieldset class="compose-off" disabled={off}>
      <AreaField {...rest} class={mono ? "mono" : undefined} />
    </fieldset>
  );
}

const shown = (field: FieldSpec, value: Value): string =>
  Array.isArray(value) ? value.join(field.kind === "tools" ? " " : ", ") : String(value);

/** meant parses the text of a field, or returns undefined if it is invalid. */
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
