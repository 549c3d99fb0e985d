import type { ComponentChildren } from "preact";
import { useRef, useState } from "preact/hooks";
import { msg } from "../i18n/messages";
import { Button, TextField } from "../ui";
import { Editor } from "./editor";
import { FieldSet } from "./form-fieldset";
import { Unread } from "./schema";

interface InputProps {
  label: string;
  hint?: ComponentChildren;
  error?: string;
  value: unknown;
  onValue: (value: unknown) => void;
}

/** NumberField edits a number. Invalid text stays and is reported. */
export function NumberField({ value, onValue, required, ...named }: InputProps & { required?: boolean }) {
  const [typed, setTyped] = useState("");
  const read = (t: string) => (t.trim() === "" ? undefined : Number.isFinite(Number(t)) ? Number(t) : t);
  const shown = read(typed) === value ? typed : value === undefined ? "" : String(value);
  const type = (t: string) => {
    setTyped(t);
    onValue(read(t));
  };
  return (
    <TextField {...named} value={shown} onText={type} inputMode="decimal" autocomplete="off" aria-required={required} />
  );
}

/** BooleanField is a checkbox with an error. */
export function BooleanField({
  label,
  hint,
  error,
  checked,
  onCheck,
}: {
  label: string;
  hint?: string;
  error?: string;
  checked: boolean;
  onCheck: (checked: boolean) => void;
}) {
  return (
    <div class="field">
      <label class="check">
        <input
          type="checkbox"
          checked={checked}
          aria-invalid={error ? true : undefined}
          onChange={(e) => onCheck(e.currentTarget.checked)}
        />
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
      {error && (
        <div class="error" role="alert">
          {error}
        </div>
      )}
    </div>
  );
}

/** MomentField edits a time in the browser's time zone. The value has the zone's offset. */
export function MomentField({ value, onValue, ...named }: Omit<InputProps, "value"> & { value: string }) {
  const moment = new Date(value);
  const shown = isNaN(moment.getTime()) ? "" : local(moment).slice(0, 16);
  const read = (t: string) => onValue(t && !isNaN(Date.parse(t)) ? new Date(t).toISOString() : undefined);
  return <TextField {...named} value={shown} onText={read} type="datetime-local" />;
}

const local = (moment: Date) => new Date(moment.getTime() - moment.getTimezoneOffset() * 60_000).toISOString();

/** ListField edits a list, one entry per line. */
export function ListField({ label, hint, error, value, onValue, name }: InputProps & { name: string }) {
  const box = useRef<HTMLDivElement>(null);
  const entries = Array.isArray(value) ? value.map(String) : [];
  const put = (next: string[]) => onValue(next.length ? next : undefined);
  const focus = (n: number) => setTimeout(() => box.current?.querySelectorAll<HTMLElement>("input")[n]?.focus());
  const add = () => {
    put([...entries, ""]);
    focus(entries.length);
  };
  const key = (e: KeyboardEvent) => {
    if (e.key !== "Enter" || e.isComposing) return;
    e.preventDefault();
    add();
  };
  return (
    <FieldSet label={label} hint={hint} error={error}>
      <div class="stack tight" ref={box}>
        {entries.map((x, i) => (
          <div key={i} class="row keep">
            <input
              class="input"
              aria-label={msg("form.entry", { name, n: i + 1 })}
              aria-invalid={error ? true : undefined}
              value={x}
              onKeyDown={key}
              onInput={(e) => put(entries.map((o, n) => (n === i ? e.currentTarget.value : o)))}
            />
            <Button
              look="quiet"
              icon="close"
              label={msg("form.remove", { n: i + 1 })}
              onClick={() => put(entries.filter((_, n) => n !== i))}
            />
          </div>
        ))}
        <div>
          <Button small icon="plus" onClick={add}>
            {msg("form.add")}
          </Button>
        </div>
      </div>
    </FieldSet>
  );
}

/** JsonField edits a value as JSON. Invalid text stays and is reported. */
export function JsonField({ label, hint, error, path, value, onValue }: InputProps & { path: string }) {
  const known = value instanceof Unread ? value.text : value === undefined ? "" : JSON.stringify(value, null, 2);
  const [typed, setTyped] = useState(known);
  const told = useRef(value);
  if (told.current !== value) {
    told.current = value;
    setTyped(known);
  }
  const type = (text: string) => {
    setTyped(text);
    told.current = read(text);
    onValue(told.current);
  };
  const why = value instanceof Unread ? msg("form.notJson", { why: value.why }) : undefined;
  return (
    <div data-path={path} class="content-json">
      <FieldSet label={label} hint={hint} error={error ?? why}>
        <Editor
          label={`${label}, ${msg("form.jsonValue")}`}
          value={typed}
          onChange={type}
          language="json"
          height="8rem"
        />
      </FieldSet>
    </div>
  );
}

function read(text: string): unknown {
  if (!text.trim()) return undefined;
  try {
    return JSON.parse(text) as unknown;
  } catch (error) {
    return new Unread(text, (error as Error).message);
  }
}
