import { useRef } from "preact/hooks";
import { api, got, useLoad, type Schema } from "../../shared/api/client";
import { msg } from "../../shared/i18n/messages";
import { Check, Menu, MenuItem, Tag } from "../../shared/ui";
import { namespaceName } from "../servers/serverlist";
import type { Selection, SkillRef } from "./document";
import { useFault } from "./faults";
import { home, SkillSearch, usable } from "./skillsearch";
import { Sortable } from "./sortable";

/** The skill for a name: undefined for a bundled skill, null if there is none. */
interface ReferencedSkill {
  skill?: Pick<Schema["Skill"], "id" | "namespace" | "code" | "runnable" | "number">;
  version?: { number: number; version?: string; digest: string };
}

async function findReferenced(
  name: string,
  ref: SkillRef | undefined,
  signal: AbortSignal,
): Promise<ReferencedSkill | null> {
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

/** useReferencedSkills resolves skill names. Each name is looked up once. */
function useReferencedSkills(names: string[], refs: Record<string, SkillRef>) {
  const known = useRef(new Map<string, ReferencedSkill | null>());
  const keyOf = (name: string) => JSON.stringify([name, refs[name]]);
  const wanted = names.map(keyOf).join();
  const load = useLoad(
    async (signal) => {
      for (const name of names.filter((n) => !known.current.has(keyOf(n))))
        known.current.set(keyOf(name), await findReferenced(name, refs[name], signal));
      return wanted;
    },
    [wanted],
  );
  return { of: (name: string) => known.current.get(keyOf(name)), error: load.error };
}

interface SkillsProps {
  value: Selection;
  onChange: (change: Selection) => void;
  /** The agent extends another agent and inherits its skills. */
  besides?: boolean;
}

/** Skills selects the skills of an agent: all, none, or an ordered list. */
export function Skills({ value, onChange, besides }: SkillsProps) {
  const fault = useFault("spec.skills", true);
  const preloadFault = useFault("spec.preload_skills", true);
  const mode = value.skills === undefined ? "all" : "some";
  const names = value.skills ?? [];
  const refs = value.skill_refs ?? {};
  const found = useReferencedSkills(names, refs);
  const list = useRef<Selection>(undefined); // the list that "all" replaced
  const choose = (to: "all" | "some") => {
    if (to === "some") return onChange(list.current ?? { skills: [] });
    const { skills, preload_skills, skill_refs } = value;
    list.current = { skills, preload_skills, skill_refs };
    onChange({ skills: undefined, preload_skills: undefined, skill_refs: undefined });
  };
  const all = besides ? msg("agents.noSkillsBesides") : msg("agents.allSkills");
  return (
    <section class="stack">
      <fieldset class="agents-choice">
        <legend>{msg("agents.whichSkills")}</legend>
        <label class="check">
          <input type="radio" name="skills" checked={mode === "all"} onChange={() => choose("all")} />
          <span>{all}</span>
        </label>
        <label class="check">
          <input type="radio" name="skills" checked={mode === "some"} onChange={() => choose("some")} />
          <span>{besides ? msg("agents.moreSkills") : msg("agents.theseSkills")}</span>
        </label>
      </fieldset>
      {(fault || preloadFault) && (
        <p class="agents-fault" role="alert">
          {fault ?? preloadFault}
        </p>
      )}
      {mode === "some" && (
        <>
          <SkillSearch taken={names} onPick={(name) => onChange({ skills: [...names, name] })} />
          {names.length === 0 && (
            <p class="muted small">{besides ? msg("agents.noneYet") : msg("agents.noneMeansNone")}</p>
          )}
          <Sortable
            label={msg("agents.skillsInOrder")}
            items={names}
            keyOf={(n) => n}
            nameOf={(n) => n}
            onOrder={(skills) => onChange({ skills })}
          >
            {(name) => <SkillRow name={name} value={value} onChange={onChange} found={found.of(name)} />}
          </Sortable>
        </>
      )}
    </section>
  );
}

const brief = (digest: string) => digest.replace("sha256:", "").slice(0, 10);

function SkillRow({
  name,
  value,
  onChange,
  found,
}: {
  name: string;
  value: Selection;
  onChange: (change: Selection) => void;
  found?: ReferencedSkill | null;
}) {
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
    onChange({
      skills: value.skills!.filter((n) => n !== name),
      preload_skills: left.length ? left : undefined,
      skill_refs: Object.keys(refs).length ? refs : undefined,
    });
  };
  return (
    <div class="agents-skill">
      <div class="grow">
        <span class="row">
          {found?.skill ? (
            <a href={`/library/${encodeURIComponent(found.skill.id)}`}>
              <strong>{name}</strong>
            </a>
          ) : (
            <strong>{name}</strong>
          )}
          {found === null && <Tag look="bad">{msg("agents.missing")}</Tag>}
          {ref?.content_hash && <Tag look="accent">{msg("agents.pinned")}</Tag>}
          {found?.skill?.code && !found.skill.runnable && <Tag look="warn">{msg("agents.unreviewed")}</Tag>}
        </span>
        <p class="small muted">
          {found === null ? (
            msg("agents.missingSays")
          ) : found === undefined ? (
            msg("agents.lookingUp")
          ) : found.skill && found.version ? (
            <Version skill={found.skill} version={found.version} pinned={!!ref?.content_hash} />
          ) : (
            msg("agents.bundled")
          )}
        </p>
      </div>
      <span class="row keep">
        <Check label={msg("agents.preload")} checked={preload.includes(name)} onCheck={load} />
        <Menu small label={msg("agents.more", { name })}>
          {found?.skill && found.version && !ref?.content_hash && (
            <MenuItem onClick={() => pin({ skill_id: found.skill!.id, content_hash: found.version!.digest })}>
              {msg("agents.pinTo", { v: found.version.version || msg("agents.number", { n: found.version.number }) })}
            </MenuItem>
          )}
          {ref && <MenuItem onClick={() => pin(undefined)}>{msg("agents.unpin")}</MenuItem>}
          <MenuItem danger onClick={remove}>
            {msg("agents.removeSkill")}
          </MenuItem>
        </Menu>
      </span>
    </div>
  );
}

/** Version shows which version of a skill is used. */
function Version({ skill, version, pinned }: Required<ReferencedSkill> & { pinned: boolean }) {
  const behind = pinned && version.number !== skill.number;
  return (
    <>
      {namespaceName(home(skill))} · {version.version || msg("agents.number", { n: version.number })} ·{" "}
      <code title={version.digest}>{brief(version.digest)}</code>
      {" · "}
      {pinned ? msg("agents.staysAt") : msg("agents.followsCurrent")}
      {behind && ` ${msg("agents.currentIs", { v: msg("agents.number", { n: skill.number }) })}`}
    </>
  );
}
