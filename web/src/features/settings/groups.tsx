import { useState } from "preact/hooks";
import { useLocation } from "preact-iso";
import { api, got, usePages } from "../../shared/api/client";
import { isAdmin, loadMe } from "../../shared/api/me";
import { decoded } from "../../shared/api/route";
import { msg } from "../../shared/i18n/messages";
import { AreaField, Button, Dialog, done, Empty, More, Problem, Shown, Tag, TextField } from "../../shared/ui";
import { Part } from "../../shared/ui/sections";
import { useSend } from "../users/form";
import { regroup, roleName } from "../users/users";
import { GroupPage } from "./group";

/**
 * Groups lists the user's groups, or all groups for administrators. A group ID in the path opens
 * that group.
 */
export function Groups({ base }: { base: string }) {
  const { path } = useLocation();
  const id = path.startsWith(base + "/") ? decoded(path.slice(base.length + 1)) : "";
  return id ? <GroupPage key={id} id={id} base={base} /> : <List base={base} />;
}

function List({ base }: { base: string }) {
  const { route } = useLocation();
  const [making, make] = useState(false);
  const pages = usePages(
    (after, signal) => got(api.GET("/api/v1/groups", { params: { query: { after, limit: 100 } }, signal })),
    [],
  );
  return (
    <Part
      title={msg("settings.tabs.groups")}
      lead={msg("settings.groupsText")}
      action={
        isAdmin.value && (
          <Button look="primary" icon="plus" onClick={() => make(true)}>
            {msg("settings.newGroup")}
          </Button>
        )
      }
    >
      {making && <NewGroup onMade={(id) => route(`${base}/${id}`)} onClose={() => make(false)} />}
      <Shown asked={pages}>
        {(groups) =>
          groups.length === 0 ? (
            <Empty title={msg("settings.noGroupsTitle")}>
              {isAdmin.value ? msg("settings.noGroupsAdmin") : msg("settings.noGroupsText")}
            </Empty>
          ) : (
            <ul class="settings-list-rows">
              {groups.map((g) => (
                <li key={g.id}>
                  <div class="grow">
                    <a href={`${base}/${g.id}`}>
                      <strong>{g.display || g.name}</strong>
                    </a>{" "}
                    {g.display && <span class="mono muted">{g.name}</span>}
                    {g.description && <p class="small muted">{g.description}</p>}
                  </div>
                  {g.role !== "outsider" && (
                    <Tag>
                      {msg("settings.yourRole")} {roleName(g.role)}
                    </Tag>
                  )}
                </li>
              ))}
            </ul>
          )
        }
      </Shown>
      <More pages={pages} />
    </Part>
  );
}

function NewGroup({ onMade, onClose }: { onMade: (id: string) => void; onClose: () => void }) {
  const [name, setName] = useState("");
  const [display, setDisplay] = useState("");
  const [description, setDescription] = useState("");
  const { send, busy, error, fault } = useSend(async () => {
    const group = await got(api.POST("/api/v1/groups", { body: { name, display, description } }));
    await Promise.all([loadMe(), regroup()]);
    done(msg("settings.groupMade"));
    onMade(group.id);
  }, "name");
  return (
    <Dialog
      title={msg("settings.newGroup")}
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>{msg("settings.back")}</Button>
          <Button type="submit" form="new-group" look="primary" aria-busy={busy || undefined}>
            {msg("settings.newGroup")}
          </Button>
        </>
      }
    >
      <form id="new-group" class="stack" onSubmit={send}>
        <TextField
          label={msg("settings.groupName")}
          hint={msg("account.nameRules")}
          error={fault("name")}
          value={name}
          onText={setName}
          required
          maxLength={64}
          autocapitalize="none"
          spellcheck={false}
          autofocus
        />
        <TextField label={msg("settings.groupDisplay")} value={display} onText={setDisplay} maxLength={200} />
        <AreaField
          label={msg("settings.description")}
          value={description}
          onText={setDescription}
          maxLength={4000}
          rows={3}
        />
        {error && <Problem error={error} />}
      </form>
    </Dialog>
  );
}
