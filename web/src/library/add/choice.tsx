import { useState } from "preact/hooks";
import type { Schema } from "../../api/client";
import { Button, Check, Tag } from "../../ui";
import { w } from "./words";

interface ChoiceProps {
  offer: Schema["Offer"];
  onTake: (dirs: string[], overwrite: string[]) => void;
  onBack: () => void;
}

/** Which skills of a place are imported: new ones are chosen, those that are here in another version are on demand. */
export function Choice({ offer, onTake, onBack }: ChoiceProps) {
  const t = w();
  const possible = offer.skills.filter((s) => !s.problem && !s.same);
  const [chosen, choose] = useState(() => new Set(possible.filter((s) => !s.here).map((s) => s.dir)));
  const set = (dir: string, on: boolean) => {
    const next = new Set(chosen);
    if (on) next.add(dir);
    else next.delete(dir);
    choose(next);
  };
  const overwrite = possible.filter((s) => s.here && chosen.has(s.dir)).map((s) => s.name);
  return (
    <section class="stack" aria-label={t.choices}>
      <div class="row">
        <h2>{t.found(offer.skills.length)}</h2>
        {offer.commit && <span class="small muted">{t.commit} <code>{offer.commit.slice(0, 12)}</code>{offer.ref && ` (${offer.ref})`}</span>}
        <span class="push row">
          <Button small onClick={() => choose(new Set(possible.map((s) => s.dir)))}>{t.all}</Button>
          <Button small onClick={() => choose(new Set())}>{t.none}</Button>
        </span>
      </div>
      {!!offer.problems.length && <div class="note warn"><strong>{t.problems}</strong><ul>{offer.problems.map((p) => <li key={p}>{p}</li>)}</ul></div>}
      <ul class="add-offer">{offer.skills.map((s) => <li key={s.dir}><Offered skill={s} on={chosen.has(s.dir)} onCheck={(on) => set(s.dir, on)} /></li>)}</ul>
      <p class="small muted">{t.keptNote}</p>
      <div class="row">
        <Button look="primary" disabled={!chosen.size} onClick={() => onTake([...chosen], overwrite)}>{t.take(chosen.size)}</Button>
        <Button onClick={onBack}>{t.another}</Button>
      </div>
    </section>
  );
}

function Offered({ skill: s, on, onCheck }: { skill: Schema["Offered"]; on: boolean; onCheck: (on: boolean) => void }) {
  const t = w();
  const state = s.problem ? <Tag look="bad">{t.cannot}</Tag> : s.same ? <Tag>{t.sameHere}</Tag> : s.here ? <Tag look="warn">{t.conflict}</Tag> : <Tag look="good">{t.fresh}</Tag>;
  const name = <><strong>{s.name || s.dir}</strong>{s.version && <span class="muted small"> {s.version}</span>} {state}</>;
  return (
    <div class="add-offered">
      {s.problem || s.same ? <div>{name}</div> : <Check label={name} checked={on} onCheck={onCheck} />}
      <p class="small muted">{s.problem || s.description}</p>
      {s.here && !s.same && on && <p class="small">{t.overwrite}: <a href={`/library/${s.here.id}`}>{s.here.name}</a> {s.here.version ?? s.here.number}</p>}
    </div>
  );
}
