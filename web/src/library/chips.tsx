import { useMemo } from "preact/hooks";
import { hasRole } from "../api/me";
import type { Schema } from "../api/client";
import { Button, Icon } from "../ui";
import type { Address } from "./address";
import { chips, reviews, tagsOf } from "./filter";
import { useScopes } from "./places";
import { w } from "./words";

/** Which skills are listed: where they are, and what they are like. */
export function Chips({ at, skills }: { at: Address; skills: Schema["Skill"][] }) {
  const scopes = useScopes();
  const tags = useMemo(() => tagsOf(skills).slice(0, 100), [skills]);
  const t = w();
  const active = chips.some((c) => at.get(c)) || !!at.get("tag");
  return (
    <div class="library-chips">
      <div class="row" role="group" aria-label={t.scopes}>
        <Chip at={at} name="in" value="" text={t.allScopes} />
        {scopes.map(([n, text]) => <Chip key={n} at={at} name="in" value={n} text={text} />)}
      </div>
      <div class="row" role="group" aria-label={t.filters}>
        <Pick at={at} name="code" label={t.code} options={[["yes", t.withCode], ["no", t.withoutCode]]} />
        <Pick at={at} name="review" label={t.review} options={reviews.map((r) => [r, t.reviews[r]])} />
        <Pick at={at} name="origin" label={t.origin} options={[["imported", t.imported], ["uploaded", t.uploaded]]} />
        {(tags.length > 0 || at.get("tag")) && <Pick at={at} name="tag" label={t.tag} options={withChosen(tags, at.get("tag")).map(([tag, n]) => [tag, n ? `${tag} (${n})` : tag])} />}
        <Chip at={at} name="unused" value="1" text={t.unused} />
        {seesHidden(at.get("in")) && <Chip at={at} name="hidden" value="1" text={t.hidden} />}
        {active && <Button small look="quiet" icon="close" onClick={() => at.go({ code: "", review: "", origin: "", tag: "", hidden: "", unused: "" })}>{t.clear}</Button>}
      </div>
    </div>
  );
}

const withChosen = (tags: [string, number][], chosen: string) => (!chosen || tags.some(([t]) => t === chosen) ? tags : [[chosen, 0] as [string, number], ...tags]);

/** Hidden skills of a group or of everybody are listed for those who manage them. */
function seesHidden(scope: string): boolean {
  if (!scope || scope.startsWith("user:")) return true;
  return hasRole(scope.replace(/^group:/, ""), "maintainer");
}

/** A value that is put into the address, or taken out again. */
function Chip({ at, name, value, text }: { at: Address; name: string; value: string; text: string }) {
  const on = at.get(name) === value;
  return (
    <button type="button" class="library-chip" aria-pressed={on} onClick={() => at.go({ [name]: on ? "" : value }, name === "in")}>
      {on && <Icon name="check" size={14} />}{text}
    </button>
  );
}

/** One of some values, or none. */
function Pick({ at, name, label, options }: { at: Address; name: string; label: string; options: [value: string, text: string][] }) {
  const value = at.get(name);
  return (
    <select class={value ? "library-chip on" : "library-chip"} aria-label={label} value={value} onChange={(e) => at.go({ [name]: e.currentTarget.value })}>
      <option value="">{label}</option>
      {options.map(([v, text]) => <option key={v} value={v}>{text}</option>)}
    </select>
  );
}
