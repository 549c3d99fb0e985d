import { useNamespaceNames } from "../../features/skills/namespaces";
import { pageOf } from "../../features/skills/skilladdress";
import type { Schema } from "../../shared/api/client";
import { findMsg, msg } from "../../shared/i18n/messages";
import { Tag } from "../../shared/ui";

type Reference = Schema["Reference"];

/** ReferenceList lists references to a skill, with kind and owner. */
export function ReferenceList({
  references,
  act,
}: {
  references: Schema["References"];
  act?: (r: Reference) => preact.ComponentChildren;
}) {
  const place = useNamespaceNames();

  if (!references.seen.length && !references.others) return <p class="muted">{msg("skill.noReferences")}</p>;
  return (
    <ul class="library-lines">
      {references.seen.map((r) => (
        <li key={`${r.kind} ${r.id} ${r.slot ?? ""}`} class="row">
          <Tag>{findMsg("skill.kinds", r.kind) ?? r.kind}</Tag>
          <span class="grow">
            <Named reference={r} text={r.kind === "Default" || r.kind === "Listing" ? place(r.id) : r.name || r.id} />
            {r.kind !== "Default" && r.kind !== "Listing" && <span class="muted small"> {place(r.namespace)}</span>}
            {r.content_hash && <span class="muted small"> {msg("skill.oneVersion")}</span>}
          </span>
          {act?.(r)}
        </li>
      ))}
      {references.others > 0 && <li class="muted">{msg("skill.others", { count: references.others })}</li>}
      {references.more && <li class="muted">{msg("skill.moreReferences")}</li>}
    </ul>
  );
}

/** Named shows a reference. Skills are linked to their page. */
function Named({ reference, text }: { reference: Reference; text: string }) {
  return reference.kind === "Skill" ? <a href={pageOf(reference.id)}>{text}</a> : <>{text}</>;
}
