import { decoded } from "../api/address";
import { useLocation } from "preact-iso";
import { useState } from "preact/hooks";
import { regroup, roleName } from "../account/people";
import { useSend } from "../account/send";
import { api, got, usePages } from "../api/client";
import { isAdmin, meet } from "../api/me";
import { AreaField, Button, Dialog, done, Empty, More, Problem, Shown, Tag, TextField } from "../ui";
import { w as door } from "../account/words";
import { GroupPage } from "./group";
import { Part } from "./sections";
import { w } from "./words";

/** The groups that one is in, or, to administrators, all; and one of them by its id in the path. */
export function Groups({ base }: { base: string }) {
  const { path } = useLocation();
  const id = path.startsWith(base + "/") ? decoded(path.slice(base.length + 1)) : "";
  return id ? <GroupPage key={id} id={id} base={base} /> : <List base={base} />;
}

function List({ base }: { base: string }) {
  const t = w();
  const { route } = useLocation();
  const [making, make] = useState(false);
  const pages = usePages((after, signal) => got(api.GET("/api/v1/groups", { params: { query: { after, limit: 100 } }, signal })), []);
  return (
    <Part title={t.tabs.groups} lead={t.groupsText} action={isAdmin.value && <Button look="primary" icon="plus" onClick={() => make(true)}>{t.newGroup}</Button>}>
      {making && <NewGroup onMade={(id) => route(`${base}/${id}`)} onClose={() => make(false)} />}
      <Shown asked={pages}>
        {(groups) => groups.length === 0 ? <Empty title={t.noGroupsTitle}>{isAdmin.value ? t.noGroupsAdmin : t.noGroupsText}</Empty> : (
          <ul class="settings-list-rows">
            {groups.map((g) => (
              <li key={g.id}>
                <div class="grow"><a href={`${base}/${g.id}`}><strong>{g.display || g.name}</strong></a> {g.display && <span class="mono muted">{g.name}</span>}{g.description && <p class="small muted">{g.description}</p>}</div>
                {g.role !== "outsider" && <Tag>{t.yourRole} {roleName(g.role)}</Tag>}
              </li>
            ))}
          </ul>
        )}
      </Shown>
      <More pages={pages} />
    </Part>
  );
}

function NewGroup({ onMade, onClose }: { onMade: (id: string) => void; onClose: () => void }) {
  const t = w();
  const [name, setName] = useState("");
  const [display, setDisplay] = useState("");
  const [description, setDescription] = useState("");
  const { send, busy, error, fault } = useSend(async () => {
    const group = await got(api.POST("/api/v1/groups", { body: { name, display, description } }));
    await Promise.all([meet(), regroup()]);
    done(t.groupMade);
    onMade(group.id);
  }, "name");
  return (
    <Dialog title={t.newGroup} onClose={onClose} actions={<><Button onClick={onClose}>{t.back}</Button><Button type="submit" form="new-group" look="primary" aria-busy={busy || undefined}>{t.newGroup}</Button></>}>
      <form id="new-group" class="stack" onSubmit={send}>
        <TextField label={t.groupName} hint={door().nameRules} error={fault("name")} value={name} onText={setName} required maxLength={64} autocapitalize="none" spellcheck={false} autofocus />
        <TextField label={t.groupDisplay} value={display} onText={setDisplay} maxLength={200} />
        <AreaField label={t.description} value={description} onText={setDescription} maxLength={4000} rows={3} />
        {error && <Problem error={error} />}
      </form>
    </Dialog>
  );
}
