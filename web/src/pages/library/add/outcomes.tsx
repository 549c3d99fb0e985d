import type { Schema } from "../../../shared/api/client";
import { msg } from "../../../shared/i18n/messages";
import { translateDiagnostic } from "../../../shared/servertext";
import type { Outcome } from "./summary";

type Offer = Schema["Offer"];

/** Codes of reasons that do not say enough. */
const vague = ["bad_name", "bad_package", "bad_skill", "source", "invalid", ""];

/** leftOut returns the skills of a source that the user cannot import, or did not select. */
export function leftOut(offer: Offer, selected?: string[]): Outcome[] {
  const outcomes = offer.broken.map((b, i): Outcome => {
    const { message, fix } = translateDiagnostic(b);
    return skipped(`broken ${i}`, "bad_skill", b.path, fix ? `${message} — ${fix}` : message);
  });
  for (const s of offer.skills) {
    const named = s.here ? <Linked id={s.here.id} name={s.name} /> : s.name || s.dir;
    if (s.problem) outcomes.push(skipped(s.dir, s.problem_code ?? "source", named, s.problem));
    else if (s.same) outcomes.push({ kind: "unchanged", key: s.dir, shown: named });
    else if (selected && !selected.includes(s.dir))
      outcomes.push(skipped(s.dir, s.here ? "exists" : "not_selected", named));
  }
  return outcomes;
}

/** outcomesOf returns what became of the skills of a source. */
export const outcomesOf = (offer: Offer, selected: string[], result: Schema["Imported"]): Outcome[] => [
  ...result.created.map((s): Outcome => ({ kind: "added", key: s.dir, shown: <Linked {...s} /> })),
  ...result.updated.map((s): Outcome => ({ kind: "updated", key: s.dir, shown: <Linked {...s} /> })),
  ...result.skipped.map((s): Outcome =>
    s.reason_code === "unchanged"
      ? { kind: "unchanged", key: s.dir, shown: <Linked {...s} /> }
      : skipped(s.dir, s.reason_code ?? "", <Linked {...s} />, s.reason),
  ),
  ...leftOut(offer, selected),
];

const skipped = (key: string, reason: string, named: Outcome["shown"], why?: string): Outcome => ({
  kind: "skipped",
  reason,
  key,
  shown: (
    <>
      {named} {vague.includes(reason) && <span class="muted">{why}</span>}
    </>
  ),
});

function Linked({ id, name, pending, number }: Pick<Schema["ImportedSkill"], "id" | "name" | "pending" | "number">) {
  return (
    <>
      {id ? <a href={`/library/${id}`}>{name}</a> : name}
      {pending && <span class="muted"> {msg("add.waits", { n: number ?? 0 })}</span>}
    </>
  );
}
