import { useRef } from "preact/hooks";
import { api, got, useAsked, type Schema } from "../api/client";
import { placeName } from "../servers/list";
import { Check, Menu, MenuItem, Tag } from "../ui";
import type { Selection, SkillRef } from "./document";
import { useFault } from "./faults";
import { Sortable } from "./sortable";
import { home, SkillSearch, usable } from "./skillsearch";
import { w } from "./words";

/** What a name stands for; nothing is a name that only what comes with Loadout has, and null one that nothing has. */
interface Meant {
  skill?: Pick<Schema["Skill"], "id" | "namespace" | "code" | "runnable" | "number">;
  version?: { number: number; version?: string; digest: string };
}

async function meant(name: string, ref: SkillRef | undefined, signal: AbortSignal): Promise<Meant | null> {
  if (ref) {
    const { data, response } = await api.GET("/api/v1/resolve", { params: { query: { name, ...ref } }, signal });
    if (!response.ok && response.status !== 404 && response.status !== 409) throw new Error(response.statusText);
    return data ?? null;
  }
  const { items } = await got(api.GET("/api/v1/skills/explain", { params: { query: { name } }, signal }));
  const skill = items.find((c) => c.chosen)?.skill;
  if (skill) return { skill, version: { number: skill.number, version: skill.version, digest: skill.digest } };
  return (await usable()).some((c) => c.name === name) ? {} : null;
}

/** What names stand for now. What was asked once is not asked again. */
function useMeant(names: string[], refs: Record<string, SkillRef>) {
  const known = useRef(new Map<string, Meant | null>());
  const keyOf = (name: string) => JSON.stringify([name, refs[name]]);
  const wanted = names.map(keyOf).join();
  const asked = useAsked(async (signal) => {
    for (const name of names.filter((n) => !known.current.has(keyOf(n)))) known.current.set(keyOf(name), await meant(name, refs[name], signal));
    return wanted;
  }, [wanted]);
  return { of: (name: string) => known.current.get(keyOf(name)), error: asked.error };
}

interface SkillsProps {
  value: Selection;
  onChange: (change: Selection) => void;
  /** A Bot's are besides those of its Ghost. */
  besides?: boolean;
}

/** Which skills an agent has: all that one reaches, none, or some in their order. */
export function Skills({ value, onChange, besides }: SkillsProps) {
  const t = w();
  const fault = useFault("spec.skills", true);
  const preloadFault = useFault("spec.preload_skills", true);
  const mode = value.skills === undefined ? "all" : "some";
  const names = value.skills ?? [];
  const refs = value.skill_refs ?? {};
  const found = useMeant(names, refs);
  const choose = (to: "all" | "some") => onChange(to === "all" ? { skills: undefined, preload_skills: undefined, skill_refs: undefined } : { skills: [] });
  const all = besides ? t.noSkillsBesides : t.allSkills;
  return (
    <section class="stack">
      <fieldset class="agents-choice">
        <legend>{t.whichSkills}</legend>
        <label class="check"><input type="radio" name="skills" checked={mode === "all"} onChange={() => choose("all")} /><span>{all}</span></label>
        <label class="check"><input type="radio" name="skills" checked={mode === "some"} onChange={() => choose("some")} /><span>{besides ? t.moreSkills : t.theseSkills}</span></label>
      </fieldset>
      {(fault || preloadFault) && <p class="agents-fault" role="alert">{fault ?? preloadFault}</p>}
      {mode === "some" && (
        <>
          <SkillSearch taken={names} onPick={(name) => onChange({ skills: [...names, name] })} />
          {names.length === 0 && <p class="muted small">{besides ? t.noneYet : t.noneMeansNone}</p>}
          <Sortable label={t.skillsInOrder} items={names} keyOf={(n) => n} nameOf={(n) => n} onOrder={(skills) => onChange({ skills })}>
            {(name) => <SkillRow name={name} value={value} onChange={onChange} found={found.of(name)} />}
          </Sortable>
        </>
      )}
    </section>
  );
}

const brief = (digest: string) => digest.replace("sha256:", "").slice(0, 10);

function SkillRow({ name, value, onChange, found }: { name: string; value: Selection; onChange: (change: Selection) => void; found?: Meant | null }) {
  const t = w();
  const preload = value.preload_skills ?? [];
  const ref = value.skill_refs?.[name];
  const pin = (to?: SkillRef) => {
    const { [name]: _, ...others } = value.skill_refs ?? {};
    const refs = to ? { ...others, [name]: to } : others;
    onChange({ skill_refs: Object.keys(refs).length ? refs : undefined });
  };
  const load = (on: boolean) => {
    const next = on ? [...preload, name] : preload.filter((n) => n !== name);
    onChange({ preload_skills: next.length ? next : undefined });
  };
  const remove = () => {
    const { [name]: _, ...refs } = value.skill_refs ?? {};
    const left = preload.filter((n) => n !== name);
    onChange({ skills: value.skills!.filter((n) => n !== name), preload_skills: left.length ? left : undefined, skill_refs: Object.keys(refs).length ? refs : undefined });
  };
  return (
    <div class="agents-skill">
      <div class="grow">
        <span class="row">
          {found?.skill ? <a href={`/library/${encodeURIComponent(found.skill.id)}`}><strong>{name}</strong></a> : <strong>{name}</strong>}
          {found === null && <Tag look="bad">{t.missing}</Tag>}
          {ref?.content_hash && <Tag look="accent">{t.pinned}</Tag>}
          {found?.skill?.code && !found.skill.runnable && <Tag look="warn">{t.unreviewed}</Tag>}
        </span>
        <p class="small muted">{found === null ? t.missingSays : found === undefined ? t.lookingUp : found.skill && found.version ? <Version skill={found.skill} version={found.version} pinned={!!ref?.content_hash} /> : t.bundled}</p>
      </div>
      <span class="row keep">
        <Check label={t.preload} checked={preload.includes(name)} onCheck={load} />
        <Menu small label={t.more(name)}>
          {found?.skill && found.version && !ref?.content_hash && <MenuItem onClick={() => pin({ skill_id: found.skill!.id, content_hash: found.version!.digest })}>{t.pinTo(found.version.version || t.number(found.version.number))}</MenuItem>}
          {ref && <MenuItem onClick={() => pin(undefined)}>{t.unpin}</MenuItem>}
          <MenuItem danger onClick={remove}>{t.removeSkill}</MenuItem>
        </Menu>
      </span>
    </div>
  );
}

/** Which version it is exactly. */
function Version({ skill, version, pinned }: Required<Meant> & { pinned: boolean }) {
  const t = w();
  const behind = pinned && version.number !== skill.number;
  return (
    <>
      {placeName(home(skill))} · {version.version || t.number(version.number)} · <code title={version.digest}>{brief(version.digest)}</code>
      {" · "}{pinned ? t.staysAt : t.followsCurrent}{behind && ` ${t.currentIs(t.number(skill.number))}`}
    </>
  );
}
