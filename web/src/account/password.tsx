import { useState } from "preact/hooks";
import { Button, Field } from "../ui";
import { w } from "./words";
import "./account.css";

interface PasswordProps {
  label: string;
  hint?: string;
  error?: string;
  value: string;
  onText: (text: string) => void;
  autocomplete: "current-password" | "new-password";
  required?: boolean;
}

/** A password, that can be shown while it is typed. */
export function PasswordField({ label, hint, error, value, onText, autocomplete, required = true }: PasswordProps) {
  const [shown, show] = useState(false);
  return (
    <Field label={label} hint={hint} error={error}>
      {(a) => (
        <div class="account-password">
          <input class="input" value={value} onInput={(e) => onText(e.currentTarget.value)} autocomplete={autocomplete} autocapitalize="none" spellcheck={false} required={required} {...a} {...({ type: shown ? "text" : "password" } as object)} />
          <Button look="quiet" icon="eye" label={shown ? w().hide : w().show} aria-pressed={shown} onClick={() => show(!shown)} />
        </div>
      )}
    </Field>
  );
}
