import type { Schema } from "../api/client";
import { short } from "../words";
import { pageOf } from "./address";
import { titleOf } from "./filter";
import { Rated, ReviewState, Where, type Marks } from "./glance";
import { w } from "./words";

/** Skills as cards: what each is for, and its state. */
export function Cards({ skills, marks }: { skills: Schema["Skill"][]; marks: Marks }) {
  return <ul class="cards">{skills.map((s) => <Card key={s.id} skill={s} uses={marks.uses.get(s.id)} isDefault={marks.defaults.has(s.id)} />)}</ul>;
}

function Card({ skill, uses, isDefault }: { skill: Schema["Skill"]; uses?: number; isDefault: boolean }) {
  const t = w();
  return (
    <li class="card library-card">
      <div class="row keep top">
        <h2 class="grow"><a class="library-open" href={pageOf(skill.id)}>{titleOf(skill)}</a></h2>
        <Rated rating={skill.rating} />
      </div>
      <p class="about">{skill.description}</p>
      <div class="row">
        <Where skill={skill} isDefault={isDefault} />
        <ReviewState skill={skill} />
      </div>
      <p class="small muted">{[t.tokens(short(skill.tokens)), t.files(skill.files), uses !== undefined && t.used(uses)].filter(Boolean).join(" · ")}</p>
    </li>
  );
}
