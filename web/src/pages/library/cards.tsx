import { pageOf } from "../../features/skills/skilladdress";
import type { Schema } from "../../shared/api/client";
import { short } from "../../shared/i18n/format";
import { msg } from "../../shared/i18n/messages";
import { AttentionTags, Origin, Rated, ReviewState, Tile, Where } from "./cells";
import { titleOf } from "./filter";
import { usageText } from "./phrases";

interface CardsProps {
  skills: Schema["Skill"][];
  defaults: Set<string>;
  /** The level of the headings. */
  heading?: "h2" | "h3";
}

/** Cards shows skills as cards. */
export function Cards({ skills, defaults, heading = "h2" }: CardsProps) {
  return (
    <ul class="cards">
      {skills.map((s) => (
        <Card key={s.id} skill={s} isDefault={defaults.has(s.id)} heading={heading} />
      ))}
    </ul>
  );
}

interface CardProps {
  skill: Schema["Skill"];
  isDefault: boolean;
  heading: "h2" | "h3";
}

function Card({ skill, isDefault, heading: Heading }: CardProps) {
  return (
    <li class="card library-card">
      <div class="row keep top">
        <Tile name={titleOf(skill)} />
        <div class="grow">
          <Heading>
            <a class="library-open" href={pageOf(skill.id)}>
              {titleOf(skill)}
            </a>
          </Heading>
          <Origin skill={skill} />
        </div>
        <Rated rating={skill.rating} />
      </div>
      <p class="about">{skill.description}</p>
      <div class="row">
        <Where skill={skill} isDefault={isDefault} />
        <ReviewState skill={skill} />
        <AttentionTags skill={skill} />
      </div>
      <p class="small muted">
        {[
          msg("library.tokens", { n: short(skill.tokens) }),
          msg("library.files", { count: skill.files }),
          skill.uses !== undefined && usageText(skill.uses),
        ]
          .filter(Boolean)
          .join(" · ")}
      </p>
    </li>
  );
}
