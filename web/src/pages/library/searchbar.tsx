import { useRef } from "preact/hooks";
import { useShortcut } from "../../features/shortcuts/keys";
import type { Address } from "../../features/skills/skilladdress";
import { msg } from "../../shared/i18n/messages";
import { store, stored } from "../../shared/i18n/storage";
import { Button, Icon } from "../../shared/ui";
import { sorting, sorts } from "./filter";
import { sortName } from "./phrases";

/** Search is the search field. The key / focuses it from anywhere on the page. */
export function Search({ at }: { at: Address }) {
  const input = useRef<HTMLInputElement>(null);
  useShortcut("focus", () => input.current?.focus());
  const key = (e: KeyboardEvent) => {
    if (e.key === "Escape" && at.get("q")) at.go({ q: "" });
    else if (e.key === "ArrowDown") document.querySelector<HTMLElement>("a.library-open")?.focus();
    else return;
    e.preventDefault();
  };
  return (
    <form class="library-search" role="search" onSubmit={(e) => e.preventDefault()}>
      <Icon name="search" />
      <input
        ref={input}
        class="input"
        type="search"
        value={at.get("q")}
        aria-label={msg("library.search")}
        aria-keyshortcuts="/"
        placeholder={msg("library.searchHint")}
        onInput={(e) => at.go({ q: e.currentTarget.value })}
        onKeyDown={key}
      />
      <kbd aria-hidden="true">/</kbd>
    </form>
  );
}

/** SortBy selects the sort order. The start page has none. */
export function SortBy({ at, start }: { at: Address; start: boolean }) {
  return (
    <select
      class="input library-sort"
      aria-label={msg("library.sort")}
      value={start ? "" : (sorting(at) ?? "")}
      onChange={(e) => at.go({ sort: e.currentTarget.value })}
    >
      {(start || at.get("q")) && <option value="">{msg(start ? "library.sort" : "library.sorts.relevance")}</option>}
      {sorts.map((s) => (
        <option key={s} value={s}>
          {sortName(s)}
        </option>
      ))}
    </select>
  );
}

/** Shape switches between cards and a table, and remembers the choice. */
export function Shape({ at }: { at: Address }) {
  const table = (at.get("view") || stored("loadout.library.view")) === "table";
  const choose = (view: string) => {
    store("loadout.library.view", view);
    at.go({ view });
  };
  return (
    <div class="row keep library-shape" role="group" aria-label={msg("library.shape")}>
      <Button
        look="quiet"
        icon="grid"
        label={msg("library.asCards")}
        aria-pressed={!table}
        onClick={() => choose("cards")}
      />
      <Button
        look="quiet"
        icon="menu"
        label={msg("library.asTable")}
        aria-pressed={table}
        onClick={() => choose("table")}
      />
    </div>
  );
}
