import { useLocation } from "preact-iso";
import { useState } from "preact/hooks";
import { regroup, roleName } from "../account/people";
import { Submit, useSend } from "../account/send";
import { SkillSwitch } from "../admin/switch";
import { api, got, useAsked, type Schema } from "../api/client";
import { hasRole, me, meet } from "../api/me";
import { AreaField, Button, done, Icon, Problem, Shown, Tabs, Tag, TextField, useConfirm } from "../ui";
import { Members } from "./members";
import { w } from "./words";

type Tab = "members" | "about" | "skills";

/** One group: who is in it, what it is called, and its skills switch. */
export function GroupPage({ id, base }: { id: string; base: string }) {
  const t = w();
  const { query, route } = useLocation();
  const asked = useAsked((signal) => got(api.GET("/api/v1/groups/{group}", { params: { path: { group: id } }, signal })), [id]);
  const tab: Tab = query.tab === "about" || query.tab === "skills" ? query.tab : "members";
  const views: [Tab, string][] = [["members", t.members], ["skills", t.switchTab], ["about", t.about]];
  return (
    <section class="stack">
      <a class="row small" href={base}><Icon name="left" size={16} /> {t.tabs.groups}</a>
      <Shown asked={asked}>
        {(g) => (
          <>
            <h2 class="row">{g.display || g.name} {g.role !== "outsider" && <Tag>{t.yourRole} {roleName(g.role)}</Tag>}</h2>
            {g.description && <p class="muted settings-lead">{g.description}</p>}
            <Tabs<Tab> label={g.name} tabs={views} open={tab} onOpen={(to) => route(`${base}/${id}${to === "members" ? "" : `?tab=${to}`}`, true)}>
              {tab === "members" && <Members group={g} />}
              {tab === "skills" && <SkillSwitch scope={`group:${g.id}`} called={g.display || g.name} may={hasRole(g.id, "maintainer")} />}
              {tab === "about" && <About group={g} base={base} onChange={(now) => { asked.set(now); void regroup(); }} />}
            </Tabs>
          </>
        )}
      </Shown>
    </section>
  );
}

function About({ group, base, onChange }: { group: Schema["Group"]; base: string; onChange: (g: Schema["Group"]) => void }) {
  const t = w();
  const owner = hasRole(group.id, "owner");
  const [display, setDisplay] = useState(group.display);
  const [description, setDescription] = useState(group.description);
  const { send, busy, error } = useSend(async () => {
    onChange(await got(api.PATCH("/api/v1/groups/{group}", { params: { path: { group: group.id } }, body: { display, description } })));
    done(t.saved);
  });
  return (
    <div class="stack loose">
      <dl class="facts"><dt>{t.groupName}</dt><dd class="mono">{group.name}</dd></dl>
      {owner && (
        <form class="stack settings-form" onSubmit={send}>
          <TextField label={t.groupDisplay} value={display} onText={setDisplay} maxLength={200} />
          <AreaField label={t.description} value={description} onText={setDescription} maxLength={4000} rows={3} />
          {error && <Problem error={error} />}
          <Submit busy={busy}>{t.save}</Submit>
        </form>
      )}
      <div class="row">
        <Leave group={group} base={base} />
        {owner && <Delete group={group} base={base} />}
      </div>
    </div>
  );
}

function Leave({ group, base }: { group: Schema["Group"]; base: string }) {
  const t = w();
  const confirm = useConfirm();
  const { route } = useLocation();
  if (!me.value!.groups.some((g) => g.group === group.id)) return null;
  const act = async () => {
    await got(api.DELETE("/api/v1/groups/{group}/members/{user}", { params: { path: { group: group.id, user: "me" } } }));
    await meet();
    done(t.left);
    route(base);
  };
  return <>{confirm.open}<Button onClick={() => confirm.ask({ title: t.leaveTitle(group.name), children: t.leaveText, yes: t.leave, danger: true, act })}>{t.leave}</Button></>;
}

function Delete({ group, base }: { group: Schema["Group"]; base: string }) {
  const t = w();
  const confirm = useConfirm();
  const { route } = useLocation();
  const act = async () => {
    await got(api.DELETE("/api/v1/groups/{group}", { params: { path: { group: group.id } } }));
    await Promise.all([meet(), regroup()]);
    done(t.deleted);
    route(base);
  };
  return <>{confirm.open}<Button look="danger" onClick={() => confirm.ask({ title: t.deleteTitle(group.name), children: t.deleteText, yes: t.deleteGroup, danger: true, act })}>{t.deleteGroup}</Button></>;
}
