import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { msg } from "../i18n/messages";
import { Button } from "../ui";
import { Fields } from "./form-fields";
import { JsonField } from "./form-inputs";
import { type FormSchema, isObject, problems, properties } from "./schema";
import "./content.css";

export { defaults, problems, type FormSchema } from "./schema";

interface SchemaFormProps {
  schema: FormSchema;
  value: Record<string, unknown>;
  onChange: (value: Record<string, unknown>) => void;
  /** The errors by path, such as "address.city"; "" is the whole value. */
  errors?: Record<string, string>;
  /** Whether the whole value can also be edited as JSON. */
  json?: boolean;
}

/** SchemaForm is a form for a JSON Schema. Unsupported parts are edited as JSON. */
export function SchemaForm({ schema, value, onChange, errors, json }: SchemaFormProps) {
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
  if (!known.length && isObject(schema.properties) && schema.additionalProperties === false)
    return <p class="muted small">{msg("form.empty")}</p>;
  return (
    <div class="content-form stack" ref={box} onFocusOut={leave}>
      {json && known.length > 0 && (
        <div class="row">
          <Button small look="quiet" onClick={() => setRaw(!raw)}>
            {raw ? msg("form.asForm") : msg("form.asJson")}
          </Button>
        </div>
      )}
      {wrong[""] && !asJson && (
        <p class="error small" role="alert">
          {wrong[""]}
        </p>
      )}
      {asJson ? (
        <JsonField
          label={msg("form.json")}
          path=""
          value={value}
          error={wrong[""]}
          onValue={(v) => onChange((v ?? {}) as Record<string, unknown>)}
        />
      ) : (
        <Fields of={known} value={value} wrong={wrong} onChange={onChange} />
      )}
    </div>
  );
}

/**
 * useWrong returns the visible errors: the caller's until their field changes, and those of visited
 * fields. It focuses the first error of the caller.
 */
function useWrong(
  schema: FormSchema,
  value: Record<string, unknown>,
  errors: Record<string, string> | undefined,
  left: Set<string>,
  box: { current: HTMLElement | null },
): Record<string, string> {
  const said = useRef({ errors, value });
  if (said.current.errors !== errors) said.current = { errors, value };
  useLayoutEffect(() => {
    if (errors && Object.keys(errors).length) box.current?.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus();
  }, [errors]);
  const own = problems(schema, value);
  const shown: Record<string, string> = {};
  for (const path of left) if (own[path]) shown[path] = own[path];
  for (const [path, text] of Object.entries(errors ?? {}))
    if (at(said.current.value, path) === at(value, path)) shown[path] = text;
  return shown;
}

/**
 * at returns the value at a path such as "address.city". Names may contain dots, so longer names
 * are tried first.
 */
function at(value: unknown, path: string): unknown {
  if (path === "" || !isObject(value)) return value;
  if (path in value) return value[path];
  const name = Object.keys(value).find((k) => path.startsWith(`${k}.`));
  return name === undefined ? undefined : at(value[name], path.slice(name.length + 1));
}
