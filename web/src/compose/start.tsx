import { useLocation } from "preact-iso";
import { useEffect, useState } from "preact/hooks";
import { api, got, useAsked } from "../api/client";
import { Page } from "../shell/page";
import { Button, Icon, Shown, Tag, TextField, useConfirm, When } from "../ui";
import { allKept, forget, keep, newKey, type Kept } from "./kept";
import { templates } from "./templates";
import { w } from "./words";
import { nameIn } from "./work";

/** Where one begins: what is kept, templates, and skills that exist. */
export function StartPage() {
  return (
    <Page title={w().compose} lead={w().lead}>
      <KeptWork />
      <Templates />
      <Existing />
    </Page>
  );
}

const placeOf = (k: Kept) => (k.of ? `/compose/${encodeURIComponent(k.of)}` : `/compose?draft=${k.key}`);

function KeptWork() {
  const [all, setAll] = useState(allKept);
  const confirm = useConfirm();
  const mine = all.filter((k) => k.touched);
  if (!mine.length) return null;
  const away = (k: Kept) =>
    confirm.ask({ title: w().throwTitle, children: <p>{w().throwText(k.name || w().untitled)}</p>, yes: w().throwAway, danger: true, act: async () => {
      forget(k.key);
      setAll(allKept());
    } });
  return (
    <section class="stack">
      <div><h2>{w().keptWork}</h2><p class="muted small">{w().keptHint}</p></div>
      <ul class="compose-list">
        {mine.map((k) => (
          <li key={k.key}>
            <div class="grow"><strong class="mono">{k.name || w().untitled}</strong> <Tag>{k.of ? w().onSkill : w().onNew}</Tag> <span class="small muted"><When time={k.at} /></span></div>
            <a class="button small" href={placeOf(k)}>{w().goOn}</a>
            <Button small look="quiet" icon="trash" label={`${w().throwAway}: ${k.name || w().untitled}`} onClick={() => away(k)} />
          </li>
        ))}
      </ul>
      {confirm.open}
    </section>
  );
}

function Templates() {
  const { route } = useLocation();
  const begin = (id: string) => {
    const files = templates[id]!();
    const key = newKey();
    keep({ key, name: nameIn(files[0]!.text ?? ""), at: new Date().toISOString(), files, touched: false });
    route(`/compose?draft=${key}`);
  };
  return (
    <section class="stack">
      <h2>{w().begin}</h2>
      <ul class="cards">
        {Object.keys(templates).map((id) => (
          <li key={id}>
            <button type="button" class="card compose-template" onClick={() => begin(id)}>
              <strong>{w().templates[id]![0]}</strong>
              <span class="small muted">{w().templates[id]![1]}</span>
            </button>
          </li>
        ))}
      </ul>
    </section>
  );
}

function Existing() {
  const [q, setQ] = useState("");
  const [asked, setAsked] = useState("");
  useEffect(() => {
    const timer = setTimeout(() => setAsked(q.trim()), 250);
    return () => clearTimeout(timer);
  }, [q]);
  const skills = useAsked(async (signal) => (await got(api.GET("/api/v1/skills", { params: { query: { q: asked || undefined, limit: 20 } }, signal }))).items, [asked]);
  return (
    <section class="stack">
      <h2>{w().existing}</h2>
      <div class="compose-search"><TextField label={w().findSkill} type="search" value={q} onText={setQ} /></div>
      <Shown asked={skills}>
        {(items) => items.length === 0 ? <p class="muted">{asked ? w().noSkills : w().noSkillsYet}</p> : (
          <ul class="compose-list">
            {items.map((s) => (
              <li key={s.id}>
                <div class="grow"><strong>{s.displayName || s.name}</strong> {s.displayName && <span class="mono muted">{s.name}</span>}<p class="small muted compose-clip">{s.description}</p></div>
                <a class="button small" href={`/compose/${encodeURIComponent(s.id)}`} aria-label={`${w().asVersion}: ${s.name}`}><Icon name="compose" size={16} />{w().asVersion}</a>
                <a class="button small" href={`/compose?copy=${encodeURIComponent(s.id)}`} aria-label={`${w().asCopy}: ${s.name}`}><Icon name="copy" size={16} />{w().asCopy}</a>
              </li>
            ))}
          </ul>
        )}
      </Shown>
    </section>
  );
}
