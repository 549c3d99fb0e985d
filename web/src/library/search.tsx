import { useEffect, useRef } from "preact/hooks";
import { Button, Icon } from "../ui";
import { store, stored } from "../words";
import type { Address } from "./address";
import { sorting, sorts } from "./filter";
import { w } from "./words";

/** Finds skills while one types; the key / leads here from anywhere on the page. */
export function Search({ at }: { at: Address }) {
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => {
    const key = (e: KeyboardEvent) => {
      const from = e.target as HTMLElement;
      if (e.key !== "/" || e.ctrlKey || e.metaKey || e.altKey || from.isContentEditable || /^(input|textarea|select)$/i.test(from.tagName)) return;
      e.preventDefault();
      input.current?.focus();
    };
    document.addEventListener("keydown", key);
    return () => document.removeEventListener("keydown", key);
  }, []);
  const key = (e: KeyboardEvent) => {
    if (e.key === "Escape" && at.get("q")) at.go({ q: "" });
    else if (e.key === "ArrowDown") document.querySelector<HTMLElement>("a.library-open")?.focus();
    else return;
    e.preventDefault();
  };
  return (
    <form class="library-search" role="search" onSubmit={(e) => e.preventDefault()}>
      <Icon name="search" />
      <input ref={input} class="input" type="search" value={at.get("q")} aria-label={w().search} aria-keyshortcuts="/" placeholder={w().searchHint} onInput={(e) => at.go({ q: e.currentTarget.value })} onKeyDown={key} />
      <kbd aria-hidden="true">/</kbd>
    </form>
  );
}

/** In which order the skills are. */
export function SortBy({ at }: { at: Address }) {
  return (
    <select class="input library-sort" aria-label={w().sort} value={sorting(at) ?? ""} onChange={(e) => at.go({ sort: e.currentTarget.value })}>
      {at.get("q") && <option value="">{w().sorts.relevance}</option>}
      {sorts.map((s) => <option key={s} value={s}>{w().sorts[s]}</option>)}
    </select>
  );
}

/** Cards or a table; the choice is kept. */
export function Shape({ at }: { at: Address }) {
  const table = (at.get("view") || stored("loadout.library.view")) === "table";
  const choose = (view: string) => {
    store("loadout.library.view", view);
    at.go({ view });
  };
  return (
    <div class="row keep library-shape" role="group" aria-label={w().shape}>
      <Button look="quiet" icon="grid" label={w().asCards} aria-pressed={!table} onClick={() => choose("cards")} />
      <Button look="quiet" icon="menu" label={w().asTable} aria-pressed={table} onClick={() => choose("table")} />
    </div>
  );
}
