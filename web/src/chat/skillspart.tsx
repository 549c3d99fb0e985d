import { useState } from "preact/hooks";
import { api, type Asked, got, Refusal } from "../api/client";
import { ActionButton, done, failed, Icon, Menu, MenuItem, Tag, useConfirm, When } from "../ui";
import { type InForce, useFrom } from "./inforce";
import { Known } from "./known";
import { LoadByHand } from "./loadbyhand";
import { w } from "./words";

export type Keep = "" | "pinned" | "once";

/** Loads a skill, or says for how long one that is loaded stays; what came of it is said. */
export async function loadSkill(id: string, name: string, keep?: Keep) {
  const loaded = await got(api.POST("/api/v1/sessions/{session}/skills", { params: { path: { session: id } }, body: keep === undefined ? { name } : { name, keep } }));
  if (loaded.state === "failed") throw new Error(`${w().notLoaded(name)}: ${loaded.problems?.join("; ") ?? ""}`);
  return loaded;
}

async function unloadSkill(id: string, name: string, cascade: boolean) {
  const { unloaded } = await got(api.DELETE("/api/v1/sessions/{session}/skills/{name}", { params: { path: { session: id, name }, query: { cascade } } }));
  done(w().unloadedDone(unloaded.join(", ") || name));
}

/** The skills in force, why they are, and what is done with them by hand. */
export function SkillsPart({ id, asked }: { id: string; asked: Asked<InForce[]> }) {
  const t = w();
  return (
    <section>
      <h2>{t.inForce}</h2>
      <Known asked={asked}>
        {(items) => (items.length ? <ul class="chat-force">{items.map((f) => <SkillCard key={f.skill.origin + f.skill.dir} id={id} skill={f} />)}</ul> : <p class="small muted">{t.noneInForce}</p>)}
      </Known>
      <LoadByHand id={id} loaded={asked.data?.map((f) => f.skill.name) ?? []} />
    </section>
  );
}

function SkillCard({ id, skill }: { id: string; skill: InForce }) {
  const t = w();
  const [open, setOpen] = useState(false);
  const from = useFrom()(skill.skill);
  return (
    <li class="chat-card">
      <div class="row keep">
        <button type="button" class="name grow" aria-expanded={open} onClick={() => setOpen(!open)}>
          <span class="truncate"><strong>{skill.displayName}</strong></span>
          <span class={open ? "chevron open" : "chevron"}><Icon name="right" size={14} /></span>
        </button>
        <SkillActions id={id} skill={skill} />
      </div>
      <p class="small muted from">{from && `${from} · `}{t.tokens(skill.tokens)}</p>
      <p class="small">
        {skill.keep === "pinned" ? <Tag look="accent"><Icon name="pin" size={12} /> {t.good}</Tag> : <Tag>{skill.keep === "once" ? t.once : skill.left === null ? t.good : t.left(skill.left)}</Tag>}
        {skill.changed && <Tag look="warn">{t.changedSince}</Tag>}
      </p>
      <p class="small why">{whyOf(skill)}</p>
      {open && (
        <dl class="facts">
          {skill.since && <><dt>{t.since}</dt><dd><When time={skill.since} /></dd></>}
          {skill.version && <><dt>{t.version}</dt><dd>{skill.version}</dd></>}
          {!!skill.tools?.length && <><dt>{t.tools}</dt><dd>{skill.tools.join(", ")}</dd></>}
          {skill.digest && <><dt>{t.digest}</dt><dd class="mono">{skill.digest.slice(0, 19)}…</dd></>}
        </dl>
      )}
    </li>
  );
}

/** Why a skill is in force, in the words of the page. */
function whyOf(f: InForce): string {
  const t = w();
  if (f.by === "dependency" || (!f.by && f.for)) return t.causeNeed(f.for ?? "");
  if (f.start) return t.causeStart(f.start);
  const parts = [t.causes[f.by ?? ""] ?? "", f.query ? t.causeQuery(f.query) : "", f.words?.length ? t.causeWords(f.words.join(", ")) : ""];
  return parts.filter(Boolean).join(" ");
}

function SkillActions({ id, skill }: { id: string; skill: InForce }) {
  const t = w();
  const confirm = useConfirm();
  const name = skill.skill.name;
  const keep = (how: Keep) => () => void loadSkill(id, name, how).catch(failed);
  const unload = async () => {
    try {
      await unloadSkill(id, name, false);
    } catch (error) {
      if (!(error instanceof Refusal && error.problem.status === 409)) throw error;
      confirm.ask({ title: t.unloadNeeded, children: t.unloadNeededText(error.problem.detail), yes: t.unloadAll, danger: true, act: () => unloadSkill(id, name, true) });
    }
  };
  return (
    <>
      <Menu small label={t.actions(skill.displayName)}>
        {skill.left === null ? <MenuItem onClick={keep("")}>{t.unpin}</MenuItem> : <MenuItem onClick={keep("pinned")}>{t.pin}</MenuItem>}
        {skill.keep !== "once" && <MenuItem onClick={keep("once")}>{t.onceOnly}</MenuItem>}
        {skill.skill_id && <MenuItem href={`/library/${skill.skill_id}`}>{t.inLibrary}</MenuItem>}
      </Menu>
      <ActionButton small look="quiet" icon="close" label={`${t.unload}: ${skill.displayName}`} act={unload} />
      {confirm.open}
    </>
  );
}
