import { useId, useState } from "preact/hooks";
import { api, got, useLoad, type Schema } from "../../shared/api/client";
import { msg } from "../../shared/i18n/messages";
import { Tag } from "../../shared/ui";
import { useListKeys } from "../../shared/ui/listkeys";
import { namespaceName } from "../servers/serverlist";

interface Found {
  name: string;
  description: string;
  /** Undefined for bundled skills. */
  skill?: Schema["Skill"];
  /** Set if the skill probably does not fit. */
  weak?: boolean;
}

const most = 8;
let abilities: Promise<Schema["Capability"][]> | undefined;

/** usable loads all skills of the user, with the bundled ones. */
export function usable(): Promise<Schema["Capability"][]> {
  abilities ??= got(api.GET("/api/v1/capabilities")).then((c) =>
    c.planning_hints.capabilities.filter((one) => one.kind === "skill"),
  );
  abilities.catch(() => (abilities = undefined));
  return abilities;
}

async function find(q: string, signal: AbortSignal): Promise<Found[]> {
  const words = q.trim().toLowerCase();
  const { items }: { items: (Schema["Skill"] & { weak?: boolean })[] } = words
    ? await got(api.GET("/api/v1/search", { params: { query: { q: words, limit: most } }, signal }))
    : await got(api.GET("/api/v1/skills", { params: { query: { limit: most } }, signal }));
  const found = items.map((skill): Found => ({
    name: skill.name,
    description: skill.description,
    skill,
    weak: skill.weak,
  }));
  const more = (await usable()).filter(
    (c) => !found.some((f) => f.name === c.name) && `${c.name} ${c.description}`.toLowerCase().includes(words),
  );
  return [...found, ...more.slice(0, most)];
}

/** home returns the namespace of a skill in the syntax of documents. */
export const home = (s: Pick<Schema["Skill"], "namespace">) =>
  s.namespace.startsWith("user:") ? "default" : s.namespace;

/** SkillSearch finds skills to add. Arrow keys move through the results, Enter adds one. */
export function SkillSearch({ taken, onPick }: { taken: string[]; onPick: (name: string) => void }) {
  const id = useId();
  const [q, setQ] = useState("");
  const [open, setOpen] = useState(false);
  const load = useLoad(async (signal) => (open ? find(q, signal) : []), [q, open]);
  const found = (load.data ?? []).filter((s) => !taken.includes(s.name));
  const pick = (name: string) => {
    onPick(name);
    setQ("");
  };
  const keys = useListKeys(found.length, (at) => pick(found[at]!.name), q);
  const key = (e: KeyboardEvent) => {
    if (e.key === "Escape") setOpen(false);
    else if (e.key === "Enter" && !found.length) {
      e.preventDefault();
      if (q.trim()) pick(q.trim()); // a bare name is resolved later, after an upload
    } else if (keys.key(e)) setOpen(true);
  };
  return (
    <div class="agents-search" onFocusOut={(e) => !e.currentTarget.contains(e.relatedTarget as Node) && setOpen(false)}>
      <label class="visually-hidden" for={`${id}-input`}>
        {msg("agents.addSkill")}
      </label>
      <input
        id={`${id}-input`}
        class="input"
        role="combobox"
        aria-expanded={open}
        aria-controls={keys.list}
        aria-autocomplete="list"
        aria-activedescendant={open ? keys.active : undefined}
        placeholder={msg("agents.addSkill")}
        autocomplete="off"
        value={q}
        onFocus={() => setOpen(true)}
        onClick={() => setOpen(true)}
        onKeyDown={key}
        onInput={(e) => {
          setQ(e.currentTarget.value);
          setOpen(true);
        }}
      />
      <ul id={keys.list} role="listbox" aria-label={msg("agents.found")} hidden={!open}>
        {found.map((s, i) => (
          <li key={s.name} {...keys.option(i)}>
            <span class="row keep">
              <strong class="truncate">{s.name}</strong>
              <span class="small muted nowrap push">
                {s.skill
                  ? `${namespaceName(home(s.skill))} · ${s.skill.version || msg("agents.number", { n: s.skill.number })}`
                  : msg("agents.bundledShort")}
              </span>
            </span>
            <span class="small muted agents-clamp">
              {s.weak && <Tag title={msg("agents.weakText")}>{msg("agents.weak")}</Tag>} {s.description}
            </span>
          </li>
        ))}
        {!found.length && (
          <li class="small muted" role="presentation">
            {load.busy ? msg("agents.searching") : q ? msg("agents.noneByName", { q }) : msg("agents.noMore")}
          </li>
        )}
      </ul>
    </div>
  );
}
