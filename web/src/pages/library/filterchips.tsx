import { readOnlyScopes, useScopes } from "../../features/skills/namespaces";
import type { Address } from "../../features/skills/skilladdress";
import type { Schema } from "../../shared/api/client";
import { hasRole } from "../../shared/api/me";
import { count } from "../../shared/i18n/format";
import { msg } from "../../shared/i18n/messages";
import { Button, Icon } from "../../shared/ui";
import { filtered, noFilters, reviews } from "./filter";

/** Chips shows the filters, with the numbers of skills once they are known. */
export function Chips({ at, facets }: { at: Address; facets?: Schema["SkillFacets"] }) {
  const scopes = useScopes();
  const has = (n?: number) => facets && (n ?? 0);
  const others = (n?: number) => facets && facets.total - (n ?? 0);
  const categories = withChosen(
    facets?.categories.map((c) => [c.category, c.count]),
    at.get("category"),
  );
  const tags = withChosen(
    facets?.tags.map((t) => [t.tag, t.count]),
    at.get("tag"),
  );
  return (
    <div class="library-chips">
      <div class="row" role="group" aria-label={msg("library.scopes")}>
        <Chip at={at} name="in" value="" text={msg("library.allScopes")} />
        {[...scopes, ...readOnlyScopes()].map(([n, text]) => (
          <Chip key={n} at={at} name="in" value={n} text={text} />
        ))}
      </div>
      <div class="row" role="group" aria-label={msg("library.filters")}>
        <Pick
          at={at}
          name="code"
          label={msg("library.code")}
          options={[
            ["yes", msg("library.withCode"), has(facets?.code)],
            ["no", msg("library.withoutCode"), others(facets?.code)],
          ]}
        />
        <Pick
          at={at}
          name="review"
          label={msg("library.review")}
          options={reviews.map((r) => [r, msg(`library.reviews.${r}`), has(facets?.reviews[r])])}
        />
        <Pick
          at={at}
          name="origin"
          label={msg("library.origin")}
          options={[
            ["imported", msg("library.imported"), has(facets?.imported)],
            ["uploaded", msg("library.uploaded"), others(facets?.imported)],
          ]}
        />
        {categories.length > 0 && <Pick at={at} name="category" label={msg("library.category")} options={categories} />}
        {tags.length > 0 && <Pick at={at} name="tag" label={msg("library.tag")} options={tags} />}
        {(facets?.attention || at.get("attention")) && (
          <Chip at={at} name="attention" value="1" text={withCount(msg("library.attention"), facets?.attention)} />
        )}
        <Chip at={at} name="unused" value="1" text={msg("library.unusedFilter")} />
        {seesHidden(at.get("in")) && <Chip at={at} name="hidden" value="1" text={msg("library.hidden")} />}
        {filtered(at) && (
          <Button small look="quiet" icon="close" onClick={() => at.go(noFilters)}>
            {msg("library.clear")}
          </Button>
        )}
      </div>
    </div>
  );
}

/** An option with its text and the number of its skills, if known. */
type Option = [value: string, text: string, n?: number];

/** withChosen returns the options for names with counts. The chosen name is always among them. */
function withChosen(names: [name: string, n: number][] = [], chosen: string): Option[] {
  const options = names.map(([name, n]): Option => [name, name, n]);
  return !chosen || names.some(([name]) => name === chosen) ? options : [[chosen, chosen], ...options];
}

/** withCount adds a number of skills to a text. */
export const withCount = (text: string, n?: number) => (n === undefined ? text : `${text} (${count(n)})`);

/** seesHidden reports whether the user manages the namespace and can list hidden skills. */
function seesHidden(scope: string): boolean {
  if (!scope || scope.startsWith("user:")) return true;
  return hasRole(scope.replace(/^group:/, ""), "maintainer");
}

/** Chip sets a filter of the address, or removes it. */
function Chip({ at, name, value, text }: { at: Address; name: string; value: string; text: string }) {
  const on = at.get(name) === value;
  return (
    <button
      type="button"
      class="library-chip"
      aria-pressed={on}
      onClick={() => at.go({ [name]: on ? "" : value }, name === "in")}
    >
      {on && <Icon name="check" size={14} />}
      {text}
    </button>
  );
}

/** Pick selects one of several values, or none. */
function Pick({ at, name, label, options }: { at: Address; name: string; label: string; options: Option[] }) {
  const value = at.get(name);
  return (
    <select
      class={value ? "library-chip on" : "library-chip"}
      aria-label={label}
      value={value}
      onChange={(e) => at.go({ [name]: e.currentTarget.value })}
    >
      <option value="">{label}</option>
      {options.map(([v, text, n]) => (
        <option key={v} value={v}>
          {withCount(text, n)}
        </option>
      ))}
    </select>
  );
}
