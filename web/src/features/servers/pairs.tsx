import { useEffect, useId, useRef, useState } from "preact/hooks";
import { msg } from "../../shared/i18n/messages";
import { Button, Menu, MenuItem } from "../../shared/ui";
import { secretReference } from "./config";
import { addPair } from "./phrases";

interface PairsProps {
  label: string;
  hint?: string;
  /** The labels of the two columns. */
  names: [name: string, value: string];
  value: Record<string, string>;
  onChange: (value: Record<string, string> | undefined) => void;
  /** The secrets that can replace a value. */
  secrets: string[];
  error?: string;
}

/** Pairs edits names with values, such as headers and environment variables. */
export function Pairs({ label, hint, names, value, onChange, secrets, error }: PairsProps) {
  const id = useId();
  const [rows, setRows] = useState<[string, string][]>(() => Object.entries(value));
  const list = useRef<HTMLDivElement>(null);
  const told = useRef(JSON.stringify(value));
  useEffect(() => {
    const now = JSON.stringify(value);
    if (now !== told.current) setRows(Object.entries(value)); // changed elsewhere, for example in the JSON
    told.current = now;
  }, [value]);
  const put = (next: [string, string][]) => {
    setRows(next);
    const kept = Object.fromEntries(next.filter(([k]) => k.trim()));
    told.current = JSON.stringify(kept);
    onChange(Object.keys(kept).length ? kept : undefined);
  };
  const set = (i: number, pair: [string, string]) => put(rows.map((r, at) => (at === i ? pair : r)));
  const add = () => {
    put([...rows, ["", ""]]);
    requestAnimationFrame(() =>
      list.current?.querySelector<HTMLInputElement>(".servers-pair:last-of-type input")?.focus(),
    );
  };
  return (
    <fieldset class="servers-pairs" aria-describedby={hint ? `${id}-hint` : undefined}>
      <legend>{label}</legend>
      {hint && (
        <p class="small muted" id={`${id}-hint`}>
          {hint}
        </p>
      )}
      <div class="stack tight" ref={list}>
        {rows.map(([k, v], i) => (
          <div class="servers-pair" key={i}>
            <input
              class="input mono"
              aria-label={`${label}: ${names[0]} ${i + 1}`}
              placeholder={names[0]}
              value={k}
              onInput={(e) => set(i, [e.currentTarget.value, v])}
            />
            <input
              class="input mono"
              aria-label={`${label}: ${names[1]} ${i + 1}`}
              placeholder={names[1]}
              value={v}
              autocomplete="off"
              onInput={(e) => set(i, [k, e.currentTarget.value])}
            />
            <SecretMenu secrets={secrets} onPick={(name) => set(i, [k, secretReference(name)])} />
            <Button
              small
              look="quiet"
              icon="close"
              label={msg("servers.removePair", { name: k || String(i + 1) })}
              onClick={() => put(rows.filter((_, at) => at !== i))}
            />
          </div>
        ))}
      </div>
      {error && (
        <div class="error" role="alert">
          {error}
        </div>
      )}
      <div>
        <Button small icon="plus" onClick={add}>
          {addPair(names[0])}
        </Button>
      </div>
    </fieldset>
  );
}

/** SecretMenu inserts a reference to a secret, so that the value stays out of the document. */
function SecretMenu({ secrets, onPick }: { secrets: string[]; onPick: (name: string) => void }) {
  return (
    <Menu small icon="key" label={msg("servers.useSecret")}>
      {secrets.map((s) => (
        <MenuItem key={s} onClick={() => onPick(s)}>
          {s}
        </MenuItem>
      ))}
      <MenuItem href="/settings/secrets">{msg("servers.keepSecret")}</MenuItem>
    </Menu>
  );
}
