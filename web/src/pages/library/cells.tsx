import { useNamespaceNames, useUserNames } from "../../features/skills/namespaces";
import type { Schema } from "../../shared/api/client";
import { ways } from "../../shared/api/me";
import { findMsg, msg } from "../../shared/i18n/messages";
import { Icon, Tag } from "../../shared/ui";
import { ratingText } from "./phrases";

type Skill = Pick<Schema["Skill"], "code" | "review">;

/** ReviewState says whether the code of a skill can run. */
export function ReviewState({ skill }: { skill: Skill }) {
  if (!skill.code) return <Tag title={msg("library.noCodeHint")}>{msg("library.noCode")}</Tag>;
  const look = ({ pending: "warn", approved: "good", rejected: "bad" } as const)[skill.review];
  return (
    <Tag look={look} title={msg(`library.reviewHints.${skill.review}`)}>
      {msg(`library.codeStates.${skill.review}`)}
    </Tag>
  );
}

/** Rated shows the mean rating, also to screen readers. */
export function Rated({ rating }: { rating?: Schema["SkillScore"] }) {
  if (!rating) return null;
  const text = ratingText(rating.stars, rating.count);
  return (
    <span class="library-rated" title={text}>
      <Icon name="star" size={14} />
      <span aria-hidden="true">{rating.stars.toFixed(1)}</span>
      <span class="visually-hidden">{text}</span>
    </span>
  );
}

/** AttentionTags says why a skill needs the user's attention. */
export function AttentionTags({ skill }: { skill: Schema["Skill"] }) {
  return (
    <>
      {skill.attention?.map((why) => (
        <Tag key={why} look="warn" title={findMsg("library.attentionHints", why)}>
          {msg(`library.attentions.${why}`)}
        </Tag>
      ))}
    </>
  );
}

const tileColours = 5;

/** Tile is the icon of a skill: its first letter, on a colour that depends on the name. */
export function Tile({ name }: { name: string }) {
  const [letter = ""] = name;
  const colour = [...name].reduce((sum, c) => sum + c.codePointAt(0)!, 0) % tileColours;
  return (
    <span class={`library-tile colour-${colour}`} aria-hidden="true">
      {letter.toUpperCase()}
    </span>
  );
}

/** Origin shows who added a skill, the author that its files name, and its source. */
export function Origin({ skill }: { skill: Schema["Skill"] }) {
  const person = useUserNames();
  const uploader = person(skill.createdBy);
  const known = uploader !== skill.createdBy && !alone();
  const text = [
    known && msg("library.by", { who: uploader }),
    skill.author && msg("library.author", { author: skill.author }),
    skill.source?.url.replace(/^\w+:\/\/|\.git$/g, "") ?? (!known && skill.createdBy && msg("library.uploaded")),
  ]
    .filter(Boolean)
    .join(" · ");
  return text ? (
    <p class="small muted truncate" title={text}>
      {text}
    </p>
  ) : null;
}

/** alone reports whether the hub has a single user, so that owners need not be shown. */
const alone = () => ways.value?.mode === "single";

/** NamespaceName shows the namespace of a skill. */
export function NamespaceName({ namespace }: { namespace: string }) {
  const place = useNamespaceNames();
  return alone() && namespace.startsWith("user:") ? null : <Tag>{place(namespace)}</Tag>;
}

/** Where shows the namespace of a skill and its special states. */
export function Where({ skill, isDefault }: { skill: Schema["Skill"]; isDefault: boolean }) {
  return (
    <>
      <NamespaceName namespace={skill.namespace} />
      {isDefault && !alone() && (
        <Tag look="accent" title={msg("library.defaultHint")}>
          {msg("library.default")}
        </Tag>
      )}
      {skill.hidden && <Tag look="warn">{msg("library.hidden")}</Tag>}
    </>
  );
}
