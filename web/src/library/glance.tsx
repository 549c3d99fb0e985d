import type { Schema } from "../api/client";
import { ways } from "../api/me";
import { Icon, Tag } from "../ui";
import { usePlaces } from "./places";
import { w } from "./words";

/** What the list knows of its skills besides what they are. */
export interface Marks {
  uses: Map<string, number>;
  defaults: Set<string>;
}

type Skill = Pick<Schema["Skill"], "code" | "review">;

/** Whether the code of a skill may run, in words. */
export function ReviewState({ skill }: { skill: Skill }) {
  const t = w();
  if (!skill.code) return <Tag title={t.noCodeHint}>{t.noCode}</Tag>;
  const look = ({ pending: "warn", approved: "good", rejected: "bad" } as const)[skill.review];
  return <Tag look={look} title={t.reviewHints[skill.review]}>{t.codeStates[skill.review]}</Tag>;
}

/** The mean of the ratings, for eyes and for ears. */
export function Rated({ rating }: { rating?: Schema["SkillScore"] }) {
  if (!rating) return null;
  const text = w().rated(rating.stars, rating.count);
  return (
    <span class="library-rated" title={text}>
      <Icon name="star" size={14} />
      <span aria-hidden="true">{rating.stars.toFixed(1)}</span>
      <span class="visually-hidden">{text}</span>
    </span>
  );
}

/** Whether nobody else is here: then all is one's own, and need not be said to be. */
const alone = () => ways.value?.mode === "single";

/** Where a skill is at home. */
export function Place({ namespace }: { namespace: string }) {
  const place = usePlaces();
  return alone() && namespace.startsWith("user:") ? null : <Tag>{place(namespace)}</Tag>;
}

/** Where a skill is at home, and what is special about it here. */
export function Where({ skill, isDefault }: { skill: Schema["Skill"]; isDefault: boolean }) {
  return (
    <>
      <Place namespace={skill.namespace} />
      {isDefault && !alone() && <Tag look="accent" title={w().defaultHint}>{w().default}</Tag>}
      {skill.hidden && <Tag look="warn">{w().hidden}</Tag>}
    </>
  );
}
