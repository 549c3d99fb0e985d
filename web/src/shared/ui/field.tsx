import type { ComponentChildren, InputHTMLAttributes } from "preact";
import { useId } from "preact/hooks";

interface FieldProps {
  label: string;
  hint?: ComponentChildren;
  error?: string;
  /** Gets the attributes that name and describe the input. Spread them on it. */
  children: (input: { id: string; "aria-describedby"?: string; "aria-invalid"?: boolean }) => ComponentChildren;
}

/** Field is a labeled input with a hint and an error. */
export function Field({ label, hint, error, children }: FieldProps) {
  const id = useId();
  const said = [hint && `${id}-hint`, error && `${id}-error`].filter(Boolean).join(" ");
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {children({ id, "aria-describedby": said || undefined, "aria-invalid": error ? true : undefined })}
      {hint && (
        <div class="hint" id={`${id}-hint`}>
          {hint}
        </div>
      )}
      {error && (
        <div class="error" id={`${id}-error`} role="alert">
          {error}
        </div>
      )}
    </div>
  );
}

interface Named {
  label: string;
  hint?: ComponentChildren;
  error?: string;
  value: string;
  onText: (text: string) => void;
}

interface TextProps extends Named, Omit<InputHTMLAttributes, "value" | "onInput" | "label" | "role"> {}

interface AreaProps extends Named {
  rows?: number;
  placeholder?: string;
  required?: boolean;
  maxLength?: number;
  class?: string;
  readOnly?: boolean;
  onKeyDown?: (e: KeyboardEvent) => void;
}

/** TextField is a single-line text input. */
export function TextField({ label, hint, error, value, onText, ...rest }: TextProps) {
  return (
    <Field label={label} hint={hint} error={error}>
      {(a) => (
        <input
          class="input"
          value={value}
          onInput={(e: { currentTarget: HTMLInputElement }) => onText(e.currentTarget.value)}
          {...(rest as object)}
          {...a}
        />
      )}
    </Field>
  );
}

/** AreaField is a multi-line text input. */
export function AreaField({ label, hint, error, value, onText, rows = 4, class: more, ...rest }: AreaProps) {
  return (
    <Field label={label} hint={hint} error={error}>
      {(a) => (
        <textarea
          class={more ? `input ${more}` : "input"}
          rows={rows}
          value={value}
          onInput={(e) => onText(e.currentTarget.value)}
          {...rest}
          {...a}
        />
      )}
    </Field>
  );
}

/** SelectField is a drop-down list. */
export function SelectField({
  label,
  hint,
  error,
  value,
  onText,
  options,
  ...rest
}: {
  label: string;
  hint?: ComponentChildren;
  error?: string;
  value: string;
  onText: (value: string) => void;
  options: [value: string, text: string, disabled?: boolean][];
  name?: string;
  disabled?: boolean;
}) {
  return (
    <Field label={label} hint={hint} error={error}>
      {(a) => (
        <select class="input" value={value} onChange={(e) => onText(e.currentTarget.value)} {...rest} {...a}>
          {options.map(([v, text, off]) => (
            <option key={v} value={v} disabled={off}>
              {text}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}

/** Check is a checkbox. */
export function Check({
  label,
  hint,
  checked,
  onCheck,
  disabled,
}: {
  label: ComponentChildren;
  hint?: string;
  checked: boolean;
  onCheck: (checked: boolean) => void;
  disabled?: boolean;
}) {
  return (
    <label class="check">
      <input type="checkbox" checked={checked} disabled={disabled} onChange={(e) => onCheck(e.currentTarget.checked)} />
      <span>
        {label}
        {hint && (
          <span class="small muted">
            <br />
            {hint}
          </span>
        )}
      </span>
    </label>
  );
}
