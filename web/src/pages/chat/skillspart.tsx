import { useState } from "preact/hooks";
import { api, type Load, got, Refusal } from "../../shared/api/client";
import { findMsg, msg } from "../../shared/i18n/messages";
import { ActionButton, done, failed, Icon, Menu, MenuItem, Tag, useConfirm, When } from "../../shared/ui";
import { type ActiveSkill, useOriginName } from "./activeskills";
import { Known } from "./knowndetails";
import { type Keep, loadSkill } from "./loadskill";
import { LoadByHand } from "./loadskilldialog";
import { unloadsText } from "./phrases";

async function unloadSkill(id: string, name: string, cascade: boolean) {
  const { unloaded } = await got(
    api.DELETE("/api/v1/sessions/{session}/skills/{name}", {
      params: { path: { session: id, name }, query: { cascade } },
    }),
  );
  done(msg("chat.unloadedDone", { names: unloaded.join(", ") || name }));
}

interface SkillsPartProps {
  id: string;
  load: Load<ActiveSkill[]>;
  beforeLoad: () => Promise<void>;
}

/** SkillsPart lists the active skills with their reasons, and loads and unloads them. */
export function SkillsPart({ id, load, beforeLoad }: SkillsPartProps) {
  return (
    <section>
      <h2>{msg("chat.inForce")}</h2>
      <Known load={load}>
        {(items) =>
          items.length ? (
            <ul class="chat-force">
              {items.map((f) => (
                <SkillCard key={f.skill.origin + f.skill.dir} id={id} skill={f} />
              ))}
            </ul>
          ) : (
            <p class="small muted">{msg("chat.noneInForce")}</p>
          )
        }
      </Known>
      <LoadByHand id={id} loaded={load.data?.map((f) => f.skill.name) ?? []} beforeLoad={beforeLoad} />
    </section>
  );
}

function SkillCard({ id, skill }: { id: string; skill: ActiveSkill }) {
  const [open, setOpen] = useState(false);
  const from = useOriginName()(skill.skill);
  return (
    <li class="chat-card">
      <div class="row keep">
        <button type="button" class="name grow" aria-expanded={open} onClick={() => setOpen(!open)}>
          <span class="truncate">
            <strong>{skill.displayName}</strong>
          </span>
          <span class={open ? "chevron open" : "chevron"}>
            <Icon name="right" size={14} />
          </span>
        </button>
        <SkillActions id={id} skill={skill} />
      </div>
      <p class="small muted from">
        {from && `${from} · `}
        {msg("chat.tokens", { count: skill.tokens })}
      </p>
      <p class="small">
        {skill.keep === "pinned" ? (
          <Tag look="accent">
            <Icon name="pin" size={12} /> {msg("chat.good")}
          </Tag>
        ) : (
          <Tag>
            {skill.keep === "once"
              ? msg("chat.once")
              : skill.left === null
                ? msg("chat.good")
                : unloadsText(skill.left)}
          </Tag>
        )}
        {skill.changed && <Tag look="warn">{msg("chat.changedSince")}</Tag>}
      </p>
      <p class="small why">{whyOf(skill)}</p>
      {open && (
        <dl class="facts">
          {skill.since && (
            <>
              <dt>{msg("chat.since")}</dt>
              <dd>
                <When time={skill.since} />
              </dd>
            </>
          )}
          {skill.version && (
            <>
              <dt>{msg("chat.version")}</dt>
              <dd>{skill.version}</dd>
            </>
          )}
          {!!skill.tools?.length && (
            <>
              <dt>{msg("chat.tools")}</dt>
              <dd>{skill.tools.join(", ")}</dd>
            </>
          )}
          {skill.digest && (
            <>
              <dt>{msg("chat.digest")}</dt>
              <dd class="mono">{skill.digest.slice(0, 19)}…</dd>
            </>
          )}
        </dl>
      )}
    </li>
  );
}

/** whyOf explains why a skill is active. */
function whyOf(f: ActiveSkill): string {
  if (f.by === "dependency" || (!f.by && f.for)) return msg("chat.causeNeed", { name: f.for ?? "" });
  if (f.start) return msg("chat.causeStart", { why: f.start });
  const parts = [
    findMsg("chat.causes", f.by ?? "") ?? "",
    f.query ? msg("chat.causeQuery", { q: f.query }) : "",
    f.words?.length ? msg("chat.causeWords", { all: f.words.join(", ") }) : "",
  ];
  return parts.filter(Boolean).join(" ");
}

function SkillActions({ id, skill }: { id: string; skill: ActiveSkill }) {
  const confirm = useConfirm();
  const name = skill.skill.name;
  const keep = (how: Keep) => () => void loadSkill(id, name, how).catch(failed);
  const unload = async () => {
    try {
      await unloadSkill(id, name, false);
    } catch (error) {
      if (!(error instanceof Refusal && error.problem.status === 409)) throw error;
      confirm.ask({
        title: msg("chat.unloadNeeded"),
        children: msg("chat.unloadNeededText", { why: error.problem.detail }),
        yes: msg("chat.unloadAll"),
        danger: true,
        act: () => unloadSkill(id, name, true),
      });
    }
  };
  return (
    <>
      <Menu small label={msg("chat.actions", { title: skill.displayName })}>
        {skill.left === null ? (
          <MenuItem onClick={keep("")}>{msg("chat.unpinSkill")}</MenuItem>
        ) : (
          <MenuItem onClick={keep("pinned")}>{msg("chat.pinSkill")}</MenuItem>
        )}
        {skill.keep !== "once" && <MenuItem onClick={keep("once")}>{msg("chat.onceOnly")}</MenuItem>}
        {skill.skill_id && <MenuItem href={`/library/${skill.skill_id}`}>{msg("chat.inLibrary")}</MenuItem>}
      </Menu>
      <ActionButton
        small
        look="quiet"
        icon="close"
        label={`${msg("chat.unload")}: ${skill.displayName}`}
        act={unload}
      />
      {confirm.open}
    </>
  );
}
