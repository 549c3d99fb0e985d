import { useState } from "preact/hooks";
import type { Schema } from "../../../shared/api/client";
import { msg } from "../../../shared/i18n/messages";
import { Button, Check, Tag } from "../../../shared/ui";
import { leftOut } from "./outcomes";
import { Groups } from "./summary";

/** importableSkills returns the skills of a source that can be imported and differ from existing ones. */
export const importableSkills = (offer: Schema["Offer"]) => offer.skills.filter((s) => !s.problem && !s.same);

interface ChoiceProps {
  offer: Schema["Offer"];
  onTake: (dirs: string[], overwrite: string[]) => void;
  onBack: () => void;
}

/**
 * Choice selects the skills to import. New skills are preselected, other versions of existing
 * skills are not.
 */
export function Choice({ offer, onTake, onBack }: ChoiceProps) {
  const skills = importableSkills(offer);
  const [chosen, choose] = useState(() => new Set(skills.filter((s) => !s.here).map((s) => s.dir)));
  const set = (dir: string, on: boolean) => {
    const next = new Set(chosen);
    if (on) next.add(dir);
    else next.delete(dir);
    choose(next);
  };
  const overwrite = skills.filter((s) => s.here && chosen.has(s.dir)).map((s) => s.name);
  return (
    <section class="stack" aria-label={msg("add.choices")}>
      <div class="row">
        <h2>{msg("add.found", { count: offer.skills.length })}</h2>
        {offer.commit && (
          <span class="small muted">
            {msg("add.commit")} <code>{offer.commit.slice(0, 12)}</code>
            {offer.ref && ` (${offer.ref})`}
          </span>
        )}
        <span class="push row">
          <Button small onClick={() => choose(new Set(skills.map((s) => s.dir)))}>
            {msg("add.all")}
          </Button>
          <Button small onClick={() => choose(new Set())}>
            {msg("add.none")}
          </Button>
        </span>
      </div>
      <ul class="add-offer">
        {skills.map((s) => (
          <li key={s.dir}>
            <Offered skill={s} on={chosen.has(s.dir)} onCheck={(on) => set(s.dir, on)} />
          </li>
        ))}
      </ul>
      <Groups outcomes={leftOut(offer)} />
      <p class="small muted">{msg("add.keptNote")}</p>
      <div class="row">
        <Button look="primary" disabled={!chosen.size} onClick={() => onTake([...chosen], overwrite)}>
          {msg("add.take", { count: chosen.size })}
        </Button>
        <Button onClick={onBack}>{msg("add.another")}</Button>
      </div>
    </section>
  );
}

function Offered({ skill: s, on, onCheck }: { skill: Schema["Offered"]; on: boolean; onCheck: (on: boolean) => void }) {
  const state = s.here ? <Tag look="warn">{msg("add.conflict")}</Tag> : <Tag look="good">{msg("add.fresh")}</Tag>;
  const name = (
    <>
      <strong>{s.name || s.dir}</strong>
      {s.version && <span class="muted small"> {s.version}</span>} {state}
    </>
  );
  return (
    <div class="add-offered">
      <Check label={name} checked={on} onCheck={onCheck} />
      <p class="small muted">{s.description}</p>
      {s.here && on && (
        <p class="small">
          {msg("add.overwrite")}: <a href={`/library/${s.here.id}`}>{s.here.name}</a> {s.here.version ?? s.here.number}
        </p>
      )}
    </div>
  );
}
