import { useNamespaceNames } from "../../features/skills/namespaces";
import type { Schema } from "../../shared/api/client";
import { ways } from "../../shared/api/me";
import { msg } from "../../shared/i18n/messages";
import { Icon, Tag } from "../../shared/ui";
import { rated } from "./phrases";

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
  const text = rated(rating.stars, rating.count);
  return (
    <span class="library-rated" title={text}>
      <Icon name="star" size={14} />
      <span aria-hidden="true">{rating.stars.toFixed(1)}</span>
      <span class="visually-hidden">{text}</span>
    </span>
  );
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
