import { useId, useState } from "preact/hooks";
import { api, got, useAsked, type Schema } from "../api/client";
import { placeName } from "../servers/list";
import { w } from "./words";

interface Found {
  name: string;
  description: string;
  /** Not there for what comes with Loadout. */
  skill?: Schema["Skill"];
}

const most = 8;
let abilities: Promise<Schema["Capability"][]> | undefined;

/** The skills that one could use, also those that come with Loadout and are in no library. */
export function usable(): Promise<Schema["Capability"][]> {
  abilities ??= got(api.GET("/api/v1/capabilities")).then((c) => c.planning_hints.capabilities.filter((one) => one.kind === "skill"));
  abilities.catch(() => (abilities = undefined));
  return abilities;
}

async function find(q: string, signal: AbortSignal): Promise<Found[]> {
  const words = q.trim().toLowerCase();
  const { items } = words ? await got(api.GET("/api/v1/search", { params: { query: { q: words, limit: most } }, signal })) : await got(api.GET("/api/v1/skills", { params: { query: { limit: most } }, signal }));
  const found = items.map((skill): Found => ({ name: skill.name, description: skill.description, skill }));
  const more = (await usable()).filter((c) => !found.some((f) => f.name === c.name) && `${c.name} ${c.description}`.toLowerCase().includes(words));
  return [...found, ...more.slice(0, most)];
}

/** Where a skill is at home, as documents write it. */
export const home = (s: Pick<Schema["Skill"], "namespace">) => (s.namespace.startsWith("user:") ? "default" : s.namespace);

/** A field that finds skills to add. Arrows go through what is found, Enter takes it. */
export function SkillSearch({ taken, onPick }: { taken: string[]; onPick: (name: string) => void }) {
  const t = w();
  const id = useId();
  const [q, setQ] = useState("");
  const [open, setOpen] = useState(false);
  const [at, setAt] = useState(0);
  const asked = useAsked(async (signal) => (open ? find(q, signal) : []), [q, open]);
  const found = (asked.data ?? []).filter((s) => !taken.includes(s.name));
  const pick = (name: string) => {
    onPick(name);
    setQ("");
    setAt(0);
  };
  const key = (e: KeyboardEvent) => {
    if (e.key === "ArrowDown" || e.key === "ArrowUp") {
      e.preventDefault();
      setOpen(true);
      setAt((at + (e.key === "ArrowDown" ? 1 : found.length - 1)) % Math.max(1, found.length));
    } else if (e.key === "Enter") {
      e.preventDefault();
      const one = found[at]?.name ?? q.trim(); // a name alone is found later, when it is uploaded
      if (one) pick(one);
    } else if (e.key === "Escape") setOpen(false);
  };
  return (
    <div class="agents-search" onFocusOut={(e) => !e.currentTarget.contains(e.relatedTarget as Node) && setOpen(false)}>
      <label class="visually-hidden" for={`${id}-input`}>{t.addSkill}</label>
      <input id={`${id}-input`} class="input" role="combobox" aria-expanded={open} aria-controls={`${id}-list`} aria-autocomplete="list" aria-activedescendant={open && found[at] ? `${id}-${at}` : undefined}
        placeholder={t.addSkill} autocomplete="off" value={q} onFocus={() => setOpen(true)} onClick={() => setOpen(true)} onKeyDown={key}
        onInput={(e) => { setQ(e.currentTarget.value); setAt(0); setOpen(true); }} />
      <ul id={`${id}-list`} role="listbox" aria-label={t.found} hidden={!open}>
        {found.map((s, i) => (
          <li key={s.name} id={`${id}-${i}`} role="option" aria-selected={i === at} onPointerDown={(e) => e.preventDefault()} onClick={() => pick(s.name)} onPointerEnter={() => setAt(i)}>
            <span class="row keep"><strong class="truncate">{s.name}</strong><span class="small muted nowrap push">{s.skill ? `${placeName(home(s.skill))} · ${s.skill.version || t.number(s.skill.number)}` : t.bundledShort}</span></span>
            <span class="small muted agents-clamp">{s.description}</span>
          </li>
        ))}
        {!found.length && <li class="small muted" role="presentation">{asked.busy ? t.searching : q ? t.noneByName(q) : t.noMore}</li>}
      </ul>
    </div>
  );
}
