import { readOnlyScopes, useScopes } from "../../features/skills/namespaces";
import type { Address } from "../../features/skills/skilladdress";
import type { Schema } from "../../shared/api/client";
import { hasRole } from "../../shared/api/me";
import { msg } from "../../shared/i18n/messages";
import { Button, Icon } from "../../shared/ui";
import { chips, reviews } from "./filter";

/** Chips shows the filters. */
export function Chips({ at, tags }: { at: Address; tags: Schema["TagCount"][] }) {
  const scopes = useScopes();
  const active = chips.some((c) => at.get(c)) || !!at.get("tag");
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
            ["yes", msg("library.withCode")],
            ["no", msg("library.withoutCode")],
          ]}
        />
        <Pick
          at={at}
          name="review"
          label={msg("library.review")}
          options={reviews.map((r) => [r, msg(`library.reviews.${r}`)])}
        />
        <Pick
          at={at}
          name="origin"
          label={msg("library.origin")}
          options={[
            ["imported", msg("library.imported")],
            ["uploaded", msg("library.uploaded")],
          ]}
        />
        {(tags.length > 0 || at.get("tag")) && (
          <Pick
            at={at}
            name="tag"
            label={msg("library.tag")}
            options={withChosen(tags, at.get("tag")).map((t) => [t.tag, t.count ? `${t.tag} (${t.count})` : t.tag])}
          />
        )}
        <Chip at={at} name="unused" value="1" text={msg("library.unused")} />
        {seesHidden(at.get("in")) && <Chip at={at} name="hidden" value="1" text={msg("library.hidden")} />}
        {active && (
          <Button
            small
            look="quiet"
            icon="close"
            onClick={() => at.go({ code: "", review: "", origin: "", tag: "", hidden: "", unused: "" })}
          >
            {msg("library.clear")}
          </Button>
        )}
      </div>
    </div>
  );
}

const withChosen = (tags: Schema["TagCount"][], chosen: string) =>
  !chosen || tags.some((t) => t.tag === chosen) ? tags : [{ tag: chosen, count: 0 }, ...tags];

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
function Pick({
  at,
  name,
  label,
  options,
}: {
  at: Address;
  name: string;
  label: string;
  options: [value: string, text: string][];
}) {
  const value = at.get(name);
  return (
    <select
      class={value ? "library-chip on" : "library-chip"}
      aria-label={label}
      value={value}
      onChange={(e) => at.go({ [name]: e.currentTarget.value })}
    >
      <option value="">{label}</option>
      {options.map(([v, text]) => (
        <option key={v} value={v}>
          {text}
        </option>
      ))}
    </select>
  );
}
