import { pageOf, type Address } from "../../features/skills/skilladdress";
import type { Schema } from "../../shared/api/client";
import { count } from "../../shared/i18n/format";
import { msg } from "../../shared/i18n/messages";
import { Icon, When } from "../../shared/ui";
import { Rated, ReviewState, Where } from "./cells";
import { sorting, titleOf, type Sort } from "./filter";

/** Table shows skills as a table. */
export function Table({ skills, defaults, at }: { skills: Schema["Skill"][]; defaults: Set<string>; at: Address }) {
  return (
    <div class="table-wrap">
      <table class="table library-table">
        <caption class="visually-hidden">{msg("library.library")}</caption>
        <thead>
          <tr>
            <Head at={at} by="name" text={msg("library.name")} />
            <th scope="col">{msg("library.state")}</th>
            <Head at={at} by="rating" text={msg("library.rating")} />
            <Head at={at} by="tokens" text={msg("library.tokensHead")} number />
            <Head at={at} by="used" text={msg("library.usedHead")} number />
            <Head at={at} by="updated" text={msg("library.updated")} />
          </tr>
        </thead>
        <tbody>
          {skills.map((s) => (
            <Line key={s.id} skill={s} isDefault={defaults.has(s.id)} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Head({ at, by, text, number }: { at: Address; by: Sort; text: string; number?: boolean }) {
  const on = sorting(at) === by;
  return (
    <th
      scope="col"
      class={number ? "number" : ""}
      aria-sort={on ? (by === "name" ? "ascending" : "descending") : undefined}
    >
      <button type="button" class="library-head" onClick={() => at.go({ sort: by })}>
        {text}
        {on && <Icon name={by === "name" ? "up" : "down"} size={14} />}
      </button>
    </th>
  );
}

function Line({ skill, isDefault }: { skill: Schema["Skill"]; isDefault: boolean }) {
  return (
    <tr>
      <td class="what">
        <a class="library-open" href={pageOf(skill.id)}>
          {titleOf(skill)}
        </a>
        <p class="muted truncate">{skill.description}</p>
      </td>
      <td>
        <div class="row">
          <ReviewState skill={skill} />
          <Where skill={skill} isDefault={isDefault} />
        </div>
      </td>
      <td>{skill.rating ? <Rated rating={skill.rating} /> : <span class="muted">{msg("library.none")}</span>}</td>
      <td class="number">{count(skill.tokens)}</td>
      <td class="number">{skill.uses === undefined ? "" : count(skill.uses)}</td>
      <td>
        <When time={skill.updated} />
      </td>
    </tr>
  );
}
