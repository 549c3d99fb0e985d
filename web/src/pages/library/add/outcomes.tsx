import type { Schema } from "../../../shared/api/client";
import { msg } from "../../../shared/i18n/messages";
import { translateDiagnostic, translateProblem } from "../../../shared/servertext";
import type { Outcome } from "./summary";

type Offer = Schema["Offer"];

/** Codes of reasons that do not say enough. */
const vague = ["bad_name", "bad_package", "bad_skill", "quota", "source", "invalid", ""];

/** Reasons for the codes of problems that are not those of a SKILL.md. */
const reasons: Record<string, string> = {
  "bad-entry": "invalid",
  "bad-name": "bad_name",
  "duplicate-name": "duplicate",
  "git-lfs": "bad_package",
  link: "bad_package",
  "special-file": "bad_package",
  submodule: "bad_package",
  unreadable: "bad_package",
};

/** leftOut returns the skills of a source that the user cannot import, or did not select, and warnings. */
export function leftOut(offer: Offer, selected?: string[]): Outcome[] {
  const errors = new Map<string, Schema["BrokenSkill"][]>();
  for (const b of offer.broken) if (b.severity !== "warning") errors.set(b.path, [...(errors.get(b.path) ?? []), b]);
  const outcomes = [...errors].map(([path, all]): Outcome => ({
    kind: "skipped",
    reason: reasons[all[0]!.code] ?? "bad_skill",
    key: `broken ${path}`,
    shown: explained(path, all.map(textOf).join("; ")),
  }));
  for (const [i, b] of offer.broken.entries())
    if (b.severity === "warning")
      outcomes.push({ kind: "warning", key: `warning ${i}`, shown: explained(b.path, textOf(b)) });
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

function textOf(b: Schema["BrokenSkill"]): string {
  const { message, fix } = translateDiagnostic(b);
  return fix ? `${message} — ${fix}` : message;
}

function skipped(key: string, reason: string, named: Outcome["shown"], why = ""): Outcome {
  const text = reason === "quota" ? translateProblem({ code: reason, detail: why }).detail : why;
  return { kind: "skipped", reason, key, shown: vague.includes(reason) ? explained(named, text) : named };
}

const explained = (named: Outcome["shown"], why: string) => (
  <>
    {named} <span class="muted">{why}</span>
  </>
);

function Linked({ id, name, pending, number }: Pick<Schema["ImportedSkill"], "id" | "name" | "pending" | "number">) {
  return (
    <>
      {id ? <a href={`/library/${id}`}>{name}</a> : name}
      {pending && <span class="muted"> {msg("add.waits", { n: number ?? 0 })}</span>}
    </>
  );
}
