import { useState } from "preact/hooks";
import { Button, Field } from "../ui";
import { w } from "./words";

interface PasswordProps {
  label: string;
  hint?: string;
  value: string;
  onText: (text: string) => void;
  autocomplete: "current-password" | "new-password" | "off";
  required?: boolean;
}

/** A password, that can be shown while it is typed. */
export function PasswordField({ label, hint, value, onText, autocomplete, required = true }: PasswordProps) {
  const [shown, show] = useState(false);
  return (
    <Field label={label} hint={hint}>
      {(a) => (
        <div class="account-password">
          <input class="input" type={shown ? "text" : "password"} value={value} onInput={(e) => onText(e.currentTarget.value)} autocomplete={autocomplete} autocapitalize="none" spellcheck={false} required={required} {...a} />
          <Button look="quiet" icon="eye" label={shown ? w().hide : w().show} aria-pressed={shown} onClick={() => show(!shown)} />
        </div>
      )}
    </Field>
  );
}
