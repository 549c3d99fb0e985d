import { useState } from "preact/hooks";
import type { Schema } from "../../../shared/api/client";
import { msg } from "../../../shared/i18n/messages";
import { Button, Check, Tag } from "../../../shared/ui";

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
          <Button small onClick={() => choose(new Set(possible.map((s) => s.dir)))}>
            {msg("add.all")}
          </Button>
          <Button small onClick={() => choose(new Set())}>
            {msg("add.none")}
          </Button>
        </span>
      </div>
      {!!offer.problems.length && (
        <div class="note warn">
          <strong>{msg("add.problems")}</strong>
          <ul>
            {offer.problems.map((p) => (
              <li key={p}>{p}</li>
            ))}
          </ul>
        </div>
      )}
      <ul class="add-offer">
        {offer.skills.map((s) => (
          <li key={s.dir}>
            <Offered skill={s} on={chosen.has(s.dir)} onCheck={(on) => set(s.dir, on)} />
          </li>
        ))}
      </ul>
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
  const state = s.problem ? (
    <Tag look="bad">{msg("add.cannot")}</Tag>
  ) : s.same ? (
    <Tag>{msg("add.sameHere")}</Tag>
  ) : s.here ? (
    <Tag look="warn">{msg("add.conflict")}</Tag>
  ) : (
    <Tag look="good">{msg("add.fresh")}</Tag>
  );
  const name = (
    <>
      <strong>{s.name || s.dir}</strong>
      {s.version && <span class="muted small"> {s.version}</span>} {state}
    </>
  );
  return (
    <div class="add-offered">
      {s.problem || s.same ? <div>{name}</div> : <Check label={name} checked={on} onCheck={onCheck} />}
      <p class="small muted">{s.problem || s.description}</p>
      {s.here && !s.same && on && (
        <p class="small">
          {msg("add.overwrite")}: <a href={`/library/${s.here.id}`}>{s.here.name}</a> {s.here.version ?? s.here.number}
        </p>
      )}
    </div>
  );
}
