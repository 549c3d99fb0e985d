import { useState } from "preact/hooks";
import { groupName, usePeople } from "../account/people";
import { api, got, useAsked, type Schema } from "../api/client";
import { hasRole, isAdmin, me } from "../api/me";
import { ActionButton, Button, done, Empty, SelectField, Shown, Tag } from "../ui";
import { DefaultForm } from "./default";
import { Part } from "./sections";
import { w } from "./words";

type Default = Schema["Default"];

/** The skills that conversations begin with: one's own, and those of groups whom one looks after. */
export function Defaults() {
  usePeople();
  const t = w();
  const [of, setOf] = useState("");
  const [editing, edit] = useState<Default | "new">();
  const asked = useAsked((signal) => got(api.GET("/api/v1/defaults", { params: { query: { namespace: of || undefined } }, signal })), [of]);
  const begins = useAsked((signal) => got(api.GET("/api/v1/defaults/choose", { signal })), []);
  const refresh = () => void Promise.all([asked.again(), begins.again()]);
  const whose: [string, string][] = [["", t.mine], ...me.value!.groups.map((g): [string, string] => [`group:${g.group}`, groupName(g.group)]), ["public", t.everybody]];
  const may = of === "" || (of === "public" ? isAdmin.value : hasRole(of.slice("group:".length), "maintainer"));
  return (
    <>
      <Part title={t.tabs.defaults} lead={t.defaultsText} action={may && <Button look="primary" icon="plus" onClick={() => edit("new")}>{t.addDefault}</Button>}>
        <div class="settings-form"><SelectField label={t.whose} value={of} onText={setOf} options={whose} /></div>
        {editing && <DefaultForm namespace={of} was={editing === "new" ? undefined : editing} onSet={refresh} onClose={() => edit(undefined)} />}
        <Shown asked={asked}>
          {({ items }) => items.length === 0
            ? <Empty title={t.noDefaults}>{t.noDefaultsText}</Empty>
            : <ul class="settings-list-rows">{items.map((d) => <Row key={d.skill_id} d={d} may={may} onEdit={() => edit(d)} onGone={refresh} />)}</ul>}
        </Shown>
      </Part>
      <Part title={t.begins2}>
        <Shown asked={begins}>
          {({ items }) => items.length === 0 ? <p class="muted">{t.nothingBegins}</p> : <p class="row">{items.map((c) => <Tag key={c.skill_id} look={c.forcePreload ? "accent" : ""}>{c.name} · {c.forcePreload ? t.preloaded : t.offered}</Tag>)}</p>}
        </Shown>
      </Part>
    </>
  );
}

function Row({ d, may, onEdit, onGone }: { d: Default; may: boolean; onEdit: () => void; onGone: () => void }) {
  const t = w();
  const remove = async () => {
    await got(api.DELETE("/api/v1/defaults/{skill}", { params: { path: { skill: d.skill_id }, query: { namespace: d.namespace } } }));
    done(t.defaultGone);
    onGone();
  };
  return (
    <li>
      <div class="grow">
        {d.name ? <a href={`/library/${d.skill_id}`}>{d.name}</a> : <span class="muted">{t.hiddenSkill}</span>} <Tag look={d.forcePreload ? "accent" : ""}>{d.forcePreload ? t.preloaded : t.offered}</Tag>
        {d.exceptions.length > 0 && <p class="small muted">{t.exceptions} {d.exceptions.map((e) => `${e.type}:${e.value}`).join(", ")}</p>}
      </div>
      {may && <div class="row"><Button small onClick={onEdit}>{t.edit}</Button><ActionButton small label={`${t.remove}: ${d.name ?? d.skill_id}`} act={remove}>{t.remove}</ActionButton></div>}
    </li>
  );
}
