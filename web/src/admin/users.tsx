import { useLocation } from "preact-iso";
import { useState } from "preact/hooks";
import { again as know } from "../account/people";
import { PersonField } from "../account/people";
import { api, got, type Schema, usePages } from "../api/client";
import { me, ways } from "../api/me";
import { Button, More, Shown, Tag, When } from "../ui";
import { Part } from "../settings/sections";
import { w as door } from "../account/words";
import { MakeUser } from "./user";
import { UserActions } from "./useractions";
import { w } from "./words";

/** Who has an account. */
export function Users() {
  const t = w();
  const { query, route } = useLocation();
  const name = query.name ?? "";
  const [making, make] = useState(false);
  const pages = usePages((after, signal) => got(api.GET("/api/v1/users", { params: { query: { after, limit: 100, name: name || undefined } }, signal })), [name]);
  const refresh = () => void Promise.all([pages.again(), know()]);
  if (ways.value?.mode === "single") return <Part title={t.tabs.users}><div class="note">{t.single}</div></Part>;
  return (
    <Part title={t.tabs.users} lead={t.usersText} action={<Button look="primary" icon="plus" onClick={() => make(true)}>{t.makeUser}</Button>}>
      {making && <MakeUser onMade={refresh} onClose={() => make(false)} />}
      <Find key={name} name={name} onFind={(n) => route(n ? `/admin/users?name=${encodeURIComponent(n)}` : "/admin/users")} />
      <Shown asked={pages}>
        {(users) => <ul class="settings-list-rows">{users.map((u) => <Row key={u.id} u={u} onChange={refresh} />)}</ul>}
      </Shown>
      <More pages={pages} />
    </Part>
  );
}

function Find({ name, onFind }: { name: string; onFind: (name: string) => void }) {
  const t = w();
  const [text, setText] = useState(name);
  return (
    <form class="admin-find" role="search" onSubmit={(e) => { e.preventDefault(); onFind(text.trim().toLowerCase()); }}>
      <PersonField label={t.find} value={text} onText={setText} />
      <Button type="submit" icon="search">{t.findIt}</Button>
      {name && <Button look="quiet" onClick={() => onFind("")}>{t.showAll}</Button>}
    </form>
  );
}

function Row({ u, onChange }: { u: Schema["User"]; onChange: () => void }) {
  const t = w();
  return (
    <li class="admin-user">
      <div>
        <strong class="mono">{u.name}</strong> {u.id === me.value?.user.id && <Tag look="accent">{door().you}</Tag>}
        {(u.display || u.account?.email) && <div class="small muted">{[u.display, u.account?.email].filter(Boolean).join(" · ")}</div>}
      </div>
      <div class="row">
        {u.disabled ? <Tag look="bad">{t.disabled}</Tag> : <Tag look="good">{t.active}</Tag>}
        {u.account?.admin && <Tag look="warn">{t.admin}</Tag>}
        {u.account && !u.account.password && <Tag>{t.noPassword}</Tag>}
      </div>
      <div class="small muted">{t.seen} {u.account?.seen ? <When time={u.account.seen} /> : t.never}</div>
      <UserActions u={u} onChange={onChange} />
    </li>
  );
}
