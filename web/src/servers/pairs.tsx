import { useEffect, useId, useRef, useState } from "preact/hooks";
import { Button, Menu, MenuItem } from "../ui";
import { secretReference } from "./config";
import { w } from "./words";

interface PairsProps {
  label: string;
  hint?: string;
  /** What the left and the right of a pair are called. */
  names: [name: string, value: string];
  value: Record<string, string>;
  onChange: (value: Record<string, string> | undefined) => void;
  /** Names of secrets that can be put in place of a value. */
  secrets: string[];
  error?: string;
}

/** Names with values, as headers and variables of an environment. */
export function Pairs({ label, hint, names, value, onChange, secrets, error }: PairsProps) {
  const id = useId();
  const [rows, setRows] = useState<[string, string][]>(() => Object.entries(value));
  const list = useRef<HTMLDivElement>(null);
  const told = useRef(JSON.stringify(value));
  useEffect(() => {
    const now = JSON.stringify(value);
    if (now !== told.current) setRows(Object.entries(value)); // it was changed elsewhere, as in the JSON
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
    requestAnimationFrame(() => list.current?.querySelector<HTMLInputElement>(".servers-pair:last-of-type input")?.focus());
  };
  return (
    <fieldset class="servers-pairs" aria-describedby={hint ? `${id}-hint` : undefined}>
      <legend>{label}</legend>
      {hint && <p class="small muted" id={`${id}-hint`}>{hint}</p>}
      <div class="stack tight" ref={list}>
        {rows.map(([k, v], i) => (
          <div class="servers-pair" key={i}>
            <input class="input mono" aria-label={`${label}: ${names[0]} ${i + 1}`} placeholder={names[0]} value={k} onInput={(e) => set(i, [e.currentTarget.value, v])} />
            <input class="input mono" aria-label={`${label}: ${names[1]} ${i + 1}`} placeholder={names[1]} value={v} autocomplete="off" onInput={(e) => set(i, [k, e.currentTarget.value])} />
            <SecretMenu secrets={secrets} onPick={(name) => set(i, [k, secretReference(name)])} />
            <Button small look="quiet" icon="close" label={w().removePair(k || String(i + 1))} onClick={() => put(rows.filter((_, at) => at !== i))} />
          </div>
        ))}
      </div>
      {error && <div class="error" role="alert">{error}</div>}
      <div><Button small icon="plus" onClick={add}>{w().addPair(names[0])}</Button></div>
    </fieldset>
  );
}

/** Puts a reference to a secret in place of a value, so that the value is in no document. */
function SecretMenu({ secrets, onPick }: { secrets: string[]; onPick: (name: string) => void }) {
  return (
    <Menu small icon="key" label={w().useSecret}>
      {secrets.map((s) => <MenuItem key={s} onClick={() => onPick(s)}>{s}</MenuItem>)}
      <MenuItem href="/settings/secrets">{w().keepSecret}</MenuItem>
    </Menu>
  );
}
