import { useState } from "preact/hooks";
import { api, got, type Schema } from "../api/client";
import { mayReview } from "../api/me";
import { ActionButton, AreaField, done } from "../ui";
import type { Loaded } from "./version";
import { w } from "./words";

/** The decision about a version, bound to the digest that was looked at. */
export function Decide({ all: { skill, version: v }, again }: { all: Loaded; again: () => void }) {
  const t = w();
  const [note, setNote] = useState(v.note ?? "");
  const [missing, setMissing] = useState(false);
  const decide = async (decision: Schema["Decision"]["decision"], said: string) => {
    const lacks = decision === "rejected" && !note.trim();
    setMissing(lacks);
    if (lacks) return;
    await got(api.PUT("/api/v1/skills/{skill}/versions/{version}/review", { params: { path: { skill: skill.id, version: String(v.number) } }, body: { decision, digest: v.digest, note: note.trim() } }));
    done(said);
    again();
  };
  if (!mayReview(skill.namespace, v)) return <div class="card"><p>{t.cannot}</p></div>;
  return (
    <div class="card stack">
      <h2>{t.decide}</h2>
      <p class="small">{t.means(v.files)}</p>
      <p class="mono small">{v.digest}</p>
      <AreaField label={t.note} hint={t.noteHint} error={missing ? t.noteNeeded : undefined} value={note} onText={setNote} rows={3} />
      <div class="row">
        {v.review !== "approved" && <ActionButton look="primary" icon="check" act={() => decide("approved", t.approved)}>{t.approve}</ActionButton>}
        {v.review !== "rejected" && <ActionButton look="danger" icon="close" act={() => decide("rejected", t.rejected)}>{t.reject}</ActionButton>}
        {v.review !== "pending" && <ActionButton act={() => decide("pending", t.taken)}>{t.takeBack}</ActionButton>}
      </div>
    </div>
  );
}
