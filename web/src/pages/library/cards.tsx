import { pageOf } from "../../features/skills/skilladdress";
import type { Schema } from "../../shared/api/client";
import { short } from "../../shared/i18n/format";
import { msg } from "../../shared/i18n/messages";
import { Rated, ReviewState, Where } from "./cells";
import { titleOf } from "./filter";
import { used } from "./phrases";

/** Cards shows skills as cards. */
export function Cards({ skills, defaults }: { skills: Schema["Skill"][]; defaults: Set<string> }) {
  return (
    <ul class="cards">
      {skills.map((s) => (
        <Card key={s.id} skill={s} isDefault={defaults.has(s.id)} />
      ))}
    </ul>
  );
}

function Card({ skill, isDefault }: { skill: Schema["Skill"]; isDefault: boolean }) {
  return (
    <li class="card library-card">
      <div class="row keep top">
        <h2 class="grow">
          <a class="library-open" href={pageOf(skill.id)}>
            {titleOf(skill)}
          </a>
        </h2>
        <Rated rating={skill.rating} />
      </div>
      <p class="about">{skill.description}</p>
      <div class="row">
        <Where skill={skill} isDefault={isDefault} />
        <ReviewState skill={skill} />
      </div>
      <p class="small muted">
        {[
          msg("library.tokens", { n: short(skill.tokens) }),
          msg("library.files", { count: skill.files }),
          skill.uses !== undefined && used(skill.uses),
        ]
          .filter(Boolean)
          .join(" · ")}
      </p>
    </li>
  );
}
