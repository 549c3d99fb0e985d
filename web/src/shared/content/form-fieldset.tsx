import type { ComponentChildren } from "preact";
import { useId } from "preact/hooks";

/** FieldSet groups inputs that form one answer. */
export function FieldSet({
  label,
  hint,
  error,
  children,
}: {
  label: string;
  hint?: ComponentChildren;
  error?: string;
  children: ComponentChildren;
}) {
  const id = useId();
  return (
    <fieldset
      class="content-set"
      aria-describedby={[hint && `${id}-hint`, error && `${id}-error`].filter(Boolean).join(" ") || undefined}
    >
      <legend>{label}</legend>
      {hint && (
        <div class="hint" id={`${id}-hint`}>
          {hint}
        </div>
      )}
      {children}
      {error && (
        <div class="error" id={`${id}-error`} role="alert">
          {error}
        </div>
      )}
    </fieldset>
  );
}
