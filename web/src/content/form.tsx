import { useEffect, useRef, useState } from "preact/hooks";
import { Button } from "../ui";
import { wf } from "./form-words";
import { Fields } from "./form-fields";
import { JsonField } from "./form-inputs";
import { type FormSchema, isObject, problems, properties } from "./schema";
import "./content.css";

export { defaults, problems, type FormSchema } from "./schema";

interface SchemaFormProps {
  schema: FormSchema;
  value: Record<string, unknown>;
  onChange: (value: Record<string, unknown>) => void;
  /** What is wrong, by where it is: "name", or "address.city"; "" is the whole. */
  errors?: Record<string, string>;
  /** Whether all of it can also be edited as JSON, as who tries a tool wants. */
  json?: boolean;
}

/** A form for what a schema describes; what it cannot show as fields is edited as JSON. */
export function SchemaForm({ schema, value, onChange, errors, json }: SchemaFormProps) {
  const t = wf();
  const box = useRef<HTMLDivElement>(null);
  const [raw, setRaw] = useState(false);
  const [left, setLeft] = useState<Set<string>>(new Set());
  const wrong = useWrong(schema, value, errors, left, box);
  const known = properties(schema);
  const asJson = raw || !known.length;
  const leave = (e: FocusEvent) => {
    const path = (e.target as HTMLElement).closest<HTMLElement>("[data-path]")?.dataset.path;
    if (path !== undefined && !left.has(path)) setLeft(new Set([...left, path]));
  };
  if (!known.length && isObject(schema.properties) && schema.additionalProperties === false) return <p class="muted small">{t.empty}</p>;
  return (
    <div class="content-form stack" ref={box} onFocusOut={leave}>
      {json && known.length > 0 && <div class="row"><Button small look="quiet" onClick={() => setRaw(!raw)}>{raw ? t.asForm : t.asJson}</Button></div>}
      {wrong[""] && !asJson && <p class="error small" role="alert">{wrong[""]}</p>}
      {asJson ? <JsonField label={t.json} path="" value={value} error={wrong[""]} onValue={(v) => onChange((v ?? {}) as Record<string, unknown>)} /> : <Fields of={known} value={value} wrong={wrong} onChange={onChange} />}
    </div>
  );
}

/**
 * What is shown as wrong: what the caller says, until that field is changed, and what is wrong
 * in fields that were left. The first of what the caller says gets the focus.
 */
function useWrong(schema: FormSchema, value: Record<string, unknown>, errors: Record<string, string> | undefined, left: Set<string>, box: { current: HTMLElement | null }): Record<string, string> {
  const said = useRef({ errors, value });
  if (said.current.errors !== errors) said.current = { errors, value };
  useEffect(() => {
    if (errors && Object.keys(errors).length) box.current?.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus();
  }, [errors]);
  const own = problems(schema, value);
  const shown: Record<string, string> = {};
  for (const path of left) if (own[path]) shown[path] = own[path];
  for (const [path, text] of Object.entries(errors ?? {})) if (at(said.current.value, path) === at(value, path)) shown[path] = text;
  return shown;
}

/** The value at "address.city". A name may have a dot of its own, so names are tried from the longest. */
function at(value: unknown, path: string): unknown {
  if (path === "" || !isObject(value)) return value;
  if (path in value) return value[path];
  const name = Object.keys(value).find((k) => path.startsWith(`${k}.`));
  return name === undefined ? undefined : at(value[name], path.slice(name.length + 1));
}
