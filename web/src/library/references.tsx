import type { Schema } from "../api/client";
import { Tag } from "../ui";
import { pageOf } from "./address";
import { usePlaces } from "./places";
import { d } from "./words-detail";

type Reference = Schema["Reference"];

/** What names a skill, each with what it is and whose. */
export function ReferenceList({ references, act }: { references: Schema["References"]; act?: (r: Reference) => preact.ComponentChildren }) {
  const place = usePlaces();
  const t = d();
  if (!references.seen.length && !references.others) return <p class="muted">{t.noReferences}</p>;
  return (
    <ul class="library-lines">
      {references.seen.map((r) => (
        <li key={`${r.kind} ${r.id} ${r.slot ?? ""}`} class="row">
          <Tag>{t.kinds[r.kind as keyof typeof t.kinds] ?? r.kind}</Tag>
          <span class="grow">
            <Named reference={r} text={r.kind === "Default" || r.kind === "Listing" ? place(r.id) : r.name || r.id} />
            {r.kind !== "Default" && r.kind !== "Listing" && <span class="muted small"> {place(r.namespace)}</span>}
            {r.content_hash && <span class="muted small"> {t.oneVersion}</span>}
          </span>
          {act?.(r)}
        </li>
      ))}
      {references.others > 0 && <li class="muted">{t.others(references.others)}</li>}
      {references.more && <li class="muted">{t.moreReferences}</li>}
    </ul>
  );
}

/** A skill has a page here; of others the name is enough. */
function Named({ reference, text }: { reference: Reference; text: string }) {
  return reference.kind === "Skill" ? <a href={pageOf(reference.id)}>{text}</a> : <>{text}</>;
}
