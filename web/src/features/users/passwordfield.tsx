import { useState } from "preact/hooks";
import { msg } from "../../shared/i18n/messages";
import { Button, Field } from "../../shared/ui";
import "./users.css";

interface PasswordProps {
  label: string;
  hint?: string;
  error?: string;
  value: string;
  onText: (text: string) => void;
  autocomplete: "current-password" | "new-password";
  required?: boolean;
}

/** PasswordField is a password input that can show its text. */
export function PasswordField({ label, hint, error, value, onText, autocomplete, required = true }: PasswordProps) {
  const [shown, show] = useState(false);
  return (
    <Field label={label} hint={hint} error={error}>
      {(a) => (
        <div class="account-password">
          <input
            class="input"
            value={value}
            onInput={(e) => onText(e.currentTarget.value)}
            autocomplete={autocomplete}
            autocapitalize="none"
            spellcheck={false}
            required={required}
            {...a}
            {...({ type: shown ? "text" : "password" } as object)}
          />
          <Button
            look="quiet"
            icon="eye"
            label={shown ? msg("account.hide") : msg("account.show")}
            aria-pressed={shown}
            onClick={() => show(!shown)}
          />
        </div>
      )}
    </Field>
  );
}
