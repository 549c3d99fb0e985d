import { useState } from "preact/hooks";
import { useLocation } from "preact-iso";
import { save } from "../../features/csv/csv";
import { Invitations, Invite, mayInvite } from "../../features/invitations/invitations";
import { again as know, UserField } from "../../features/users/users";
import { api, got, type Schema, usePages } from "../../shared/api/client";
import { me, ways } from "../../shared/api/me";
import { msg } from "../../shared/i18n/messages";
import { ActionButton, Button, More, Shown, Tag, When } from "../../shared/ui";
import { Part } from "../../shared/ui/sections";
import { usersAsCSV } from "./alluserslist";
import { keptImport } from "./createusers";
import { ImportUsers } from "./importusers";
import { MakeUser } from "./user";
import { UserActions } from "./useractions";

/** Users lists the accounts. */
export function Users() {
  const { query, route } = useLocation();
  const name = query.name ?? "";
  const [making, make] = useState(false);
  const [loading, load] = useState(() => !!keptImport());
  const [invited, setInvited] = useState(0);
  const pages = usePages(
    (after, signal) =>
      got(api.GET("/api/v1/users", { params: { query: { after, limit: 100, name: name || undefined } }, signal })),
    [name],
  );
  const refresh = () => void Promise.all([pages.again(), know()]);
  if (ways.value?.mode === "single")
    return (
      <Part title={msg("admin.tabs.users")}>
        <div class="note">{msg("admin.single")}</div>
      </Part>
    );
  return (
    <Part
      title={msg("admin.tabs.users")}
      lead={msg("admin.usersText")}
      action={
        <div class="row">
          <Button icon="upload" onClick={() => load(true)}>
            {msg("admin.csvImport")}
          </Button>
          <ActionButton icon="download" act={async () => save("users.csv", "text/csv", await usersAsCSV())}>
            {msg("admin.csvExport")}
          </ActionButton>
          {mayInvite() && <Invite onMade={() => setInvited(invited + 1)} />}
          <Button look="primary" icon="plus" onClick={() => make(true)}>
            {msg("admin.makeUser")}
          </Button>
        </div>
      }
    >
      {loading && <ImportUsers onMade={refresh} onClose={() => load(false)} />}
      <Invitations change={invited} />
      {making && <MakeUser onMade={refresh} onClose={() => make(false)} />}
      <Find
        key={name}
        name={name}
        onFind={(n) => route(n ? `/admin/users?name=${encodeURIComponent(n)}` : "/admin/users")}
      />
      <Shown asked={pages}>
        {(users) => (
          <ul class="settings-list-rows">
            {users.map((u) => (
              <Row key={u.id} u={u} onChange={refresh} />
            ))}
          </ul>
        )}
      </Shown>
      <More pages={pages} />
    </Part>
  );
}

function Find({ name, onFind }: { name: string; onFind: (name: string) => void }) {
  const [text, setText] = useState(name);
  return (
    <form
      class="admin-find"
      role="search"
      onSubmit={(e) => {
        e.preventDefault();
        onFind(text.trim().toLowerCase());
      }}
    >
      <UserField label={msg("admin.find")} value={text} onText={setText} />
      <Button type="submit" icon="search">
        {msg("admin.findIt")}
      </Button>
      {name && (
        <Button look="quiet" onClick={() => onFind("")}>
          {msg("admin.showAll")}
        </Button>
      )}
    </form>
  );
}

function Row({ u, onChange }: { u: Schema["User"]; onChange: () => void }) {
  return (
    <li class="admin-user">
      <div>
        <strong class="mono">{u.name}</strong>{" "}
        {u.id === me.value?.user.id && <Tag look="accent">{msg("account.you")}</Tag>}
        {(u.display || u.account?.email) && (
          <div class="small muted">{[u.display, u.account?.email].filter(Boolean).join(" · ")}</div>
        )}
      </div>
      <div class="row">
        {u.disabled ? <Tag look="bad">{msg("admin.disabled")}</Tag> : <Tag look="good">{msg("admin.active")}</Tag>}
        {u.account?.admin && <Tag look="warn">{msg("admin.admin")}</Tag>}
        {u.account && !u.account.password && <Tag>{msg("admin.noPassword")}</Tag>}
      </div>
      <div class="small muted">
        {msg("admin.seen")} {u.account?.seen ? <When time={u.account.seen} /> : msg("admin.never")}
      </div>
      <UserActions u={u} onChange={onChange} />
    </li>
  );
}
