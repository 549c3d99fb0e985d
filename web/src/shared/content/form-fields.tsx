import type { ComponentChildren } from "preact";
import { useEffect, useId } from "preact/hooks";
import { msg } from "../i18n/messages";
import { AreaField, Check, SelectField, TextField } from "../ui";
import { FieldSet } from "./form-fieldset";
import { BooleanField, JsonField, ListField, MomentField, NumberField } from "./form-inputs";
import { type Choice, isObject, number, properties, type Property, text } from "./schema";

interface FieldsProps {
  of: Property[];
  value: Record<string, unknown>;
  wrong: Record<string, string>;
  onChange: (value: Record<string, unknown>) => void;
}

/** Fields shows the fields of an object. It removes emptied values. */
export function Fields({ of, value, wrong, onChange }: FieldsProps) {
  const put = (name: string, v: unknown) => {
    const next = { ...value };
    if (v === undefined || v === "") delete next[name];
    else next[name] = v;
    onChange(next);
  };
  return of.map((p) => <One key={p.path} p={p} value={value[p.name]} wrong={wrong} onValue={(v) => put(p.name, v)} />);
}

interface OneProps {
  p: Property;
  value: unknown;
  wrong: Record<string, string>;
  onValue: (value: unknown) => void;
}

const labelOf = (p: Property) => (p.required || p.kind === "object" ? p.title : `${p.title} (${msg("form.optional")})`);

function One({ p, value, wrong, onValue }: OneProps) {
  const common = { label: labelOf(p), hint: hintOf(p), error: wrong[p.path], onValue };
  switch (p.kind) {
    case "object":
      return <Group p={p} value={value} wrong={wrong} onValue={onValue} />;
    case "text":
      return (
        <div data-path={p.path}>
          <Text p={p} value={value} {...common} />
        </div>
      );
    case "number":
    case "integer":
      return (
        <div data-path={p.path}>
          <NumberField {...common} value={value} required={p.required} />
        </div>
      );
    case "boolean":
      return (
        <div data-path={p.path}>
          <YesNo p={p} value={value} {...common} />
        </div>
      );
    case "choice":
      return (
        <div data-path={p.path}>
          <OneOf p={p} value={value} {...common} />
        </div>
      );
    case "choices":
      return (
        <div data-path={p.path}>
          <SomeOf p={p} value={value} {...common} />
        </div>
      );
    case "list":
      return (
        <div data-path={p.path}>
          <ListField {...common} value={value} name={p.title} />
        </div>
      );
    default:
      return <JsonField {...common} path={p.path} value={value} />;
  }
}

type Common = {
  p: Property;
  label: string;
  hint?: ComponentChildren;
  error?: string;
  value: unknown;
  onValue: (value: unknown) => void;
};

/** hintOf describes a field and its limits. */
function hintOf(p: Property): ComponentChildren {
  const least = number(p.schema.minimum);
  const most = number(p.schema.maximum);
  const bounds =
    least !== undefined && most !== undefined
      ? msg("form.range", { a: least, b: most })
      : least !== undefined
        ? msg("form.from", { n: least })
        : most !== undefined
          ? msg("form.upTo", { n: most })
          : p.schema.format === "date-time"
            ? msg("form.local")
            : undefined;
  return p.description || bounds ? (
    <span class="content-hint">{[p.description, bounds].filter(Boolean).join(" · ")}</span>
  ) : undefined;
}

const types: Record<string, "email" | "url" | "date" | "time"> = {
  email: "email",
  uri: "url",
  date: "date",
  time: "time",
};

/** isLong reports whether a field needs several lines, by its maximum length or its name. */
function isLong(p: Property, value: unknown): boolean {
  const most = number(p.schema.maxLength);
  if (text(value)?.includes("\n")) return true;
  return most !== undefined
    ? most > 160
    : /(text|content|body|message|code|prompt|script|notes?|description|comment|reason)$/i.test(p.name);
}

function Text({ p, value, onValue, ...named }: Common) {
  const format = text(p.schema.format) ?? "";
  const is = typeof value === "string" ? value : value === undefined || value === null ? "" : JSON.stringify(value);
  if (format === "date-time") return <MomentField {...named} value={is} onValue={onValue} />;
  if (!types[format] && isLong(p, value))
    return <AreaField {...named} value={is} onText={onValue} rows={4} required={p.required} />;
  return (
    <TextField
      {...named}
      value={is}
      onText={onValue}
      type={types[format] ?? "text"}
      aria-required={p.required}
      autocomplete="off"
    />
  );
}

function YesNo({ p, value, label, hint, error, onValue }: Common) {
  const sure = p.required || p.schema.default !== undefined;
  useEffect(() => {
    if (sure && value === undefined) onValue(p.schema.default ?? false);
  }, []);
  if (sure)
    return (
      <BooleanField label={p.title} hint={p.description} error={error} checked={value === true} onCheck={onValue} />
    );
  const is = value === true ? "yes" : value === false ? "no" : "";
  return (
    <SelectField
      label={label}
      hint={hint}
      error={error}
      value={is}
      onText={(v) => onValue(v === "" ? undefined : v === "yes")}
      options={[
        ["", msg("form.none")],
        ["yes", msg("form.yes")],
        ["no", msg("form.no")],
      ]}
    />
  );
}

/** The inputs have indices as values, because an enum may contain 1 and "1". */
const indexOf = (choices: Choice[], value: unknown) => choices.findIndex(([c]) => c === value);

function OneOf({ p, value, label, hint, error, onValue }: Common) {
  const at = indexOf(p.choices, value);
  const id = useId();
  if (p.required && p.choices.length <= 4) {
    return (
      <FieldSet label={label} hint={hint} error={error}>
        {p.choices.map(([c, title], i) => (
          <label key={i} class="check">
            <input
              type="radio"
              name={id}
              checked={i === at}
              aria-invalid={error ? true : undefined}
              onChange={() => onValue(c)}
            />
            <span>{title}</span>
          </label>
        ))}
      </FieldSet>
    );
  }
  const options: [string, string][] = p.choices.map(([, title], i) => [String(i), title]);
  return (
    <SelectField
      label={label}
      hint={hint}
      error={error}
      value={at < 0 ? "" : String(at)}
      onText={(v) => onValue(v === "" ? undefined : p.choices[Number(v)]?.[0])}
      options={[["", p.required ? msg("form.choose") : msg("form.none")], ...options]}
    />
  );
}

function SomeOf({ p, value, label, hint, error, onValue }: Common) {
  const chosen = Array.isArray(value) ? value : [];
  const turn = (c: string | number, on: boolean) => {
    const next = p.choices.map(([v]) => v).filter((v) => (v === c ? on : chosen.includes(v)));
    onValue(next.length || p.required ? next : undefined);
  };
  return (
    <FieldSet label={label} hint={hint} error={error}>
      {p.choices.map(([c, title], i) => (
        <Check key={i} label={title} checked={chosen.includes(c)} onCheck={(on) => turn(c, on)} />
      ))}
    </FieldSet>
  );
}

function Group({ p, value, wrong, onValue }: OneProps) {
  const inner = isObject(value) ? value : {};
  const depth = p.path.split(".").length;
  return (
    <fieldset class="content-set group">
      <legend>{p.required ? p.title : `${p.title} (${msg("form.optional")})`}</legend>
      {p.description && <div class="hint">{p.description}</div>}
      {wrong[p.path] && (
        <div class="error" role="alert">
          {wrong[p.path]}
        </div>
      )}
      <Fields
        of={properties(p.schema, p.path, depth)}
        value={inner}
        wrong={wrong}
        onChange={(v) => onValue(Object.keys(v).length || p.required ? v : undefined)}
      />
    </fieldset>
  );
}
