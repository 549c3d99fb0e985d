import { useState } from "preact/hooks";
import { api, got, type Schema, usePages } from "../../shared/api/client";
import { hasRole, isAdmin, me } from "../../shared/api/me";
import { findMsg, msg } from "../../shared/i18n/messages";
import {
  Button,
  done,
  failed,
  More,
  Problem,
  SelectField,
  Shown,
  TableWrap,
  Tag,
  useConfirm,
  When,
} from "../../shared/ui";
import { Invitations, Invite, mayInvite } from "../invitations/invitations";
import { useSend } from "../users/form";
import { UserField, userID, roleName } from "../users/users";

type Role = Schema["MemberRole"]["role"];
type Member = Schema["Member"];

const roles: Role[] = ["reporter", "developer", "maintainer", "owner"];

/** given returns the roles that the user may assign, up to the user's own. */
function given(group: Schema["Group"]): Role[] {
  if (isAdmin.value) return roles;
  return roles.slice(0, roles.indexOf(group.role as Role) + 1);
}

/** Members lists the members of a group. Maintainers can change them. */
export function Members({ group }: { group: Schema["Group"] }) {
  const pages = usePages(
    (after, signal) =>
      got(
        api.GET("/api/v1/groups/{group}/members", {
          params: { path: { group: group.id }, query: { after, limit: 500 } },
          signal,
        }),
      ),
    [group.id],
  );
  const [invited, setInvited] = useState(0);
  const may = hasRole(group.id, "maintainer");
  const order = (a: Member, b: Member) =>
    roles.indexOf(b.role) - roles.indexOf(a.role) || a.user.name.localeCompare(b.user.name);
  return (
    <div class="stack">
      {may && <Add group={group} onAdded={() => void pages.again()} />}
      {mayInvite(group.id) && (
        <div>
          <Invite group={group} onMade={() => setInvited(invited + 1)} />
        </div>
      )}
      {hasRole(group.id, "owner") && <Invitations group={group.id} change={invited} />}
      <Shown asked={pages}>
        {(members) =>
          members.length === 0 ? (
            <p class="muted">{msg("settings.noMembers")}</p>
          ) : (
            <TableWrap label={msg("settings.members")}>
              <table class="table settings-middle">
                <thead>
                  <tr>
                    <th scope="col">{msg("settings.name")}</th>
                    <th scope="col">{msg("settings.role")}</th>
                    <th scope="col">{msg("settings.since")}</th>
                    {may && (
                      <th scope="col">
                        <span class="visually-hidden">{msg("settings.actions")}</span>
                      </th>
                    )}
                  </tr>
                </thead>
                <tbody>
                  {members.toSorted(order).map((m) => (
                    <Row key={m.user.id} m={m} group={group} may={may} onChange={() => void pages.again()} />
                  ))}
                </tbody>
              </table>
            </TableWrap>
          )
        }
      </Shown>
      <More pages={pages} />
      <dl class="facts">
        {roles.map((r) => (
          <>
            <dt>{roleName(r)}</dt>
            <dd class="muted">{findMsg("settings.roleText", r)}</dd>
          </>
        ))}
      </dl>
    </div>
  );
}

function Row({ m, group, may, onChange }: { m: Member; group: Schema["Group"]; may: boolean; onChange: () => void }) {
  const confirm = useConfirm();
  const path = { group: group.id, user: m.user.id };
  const mine = may && given(group).includes(m.role);
  const setRole = (role: string) =>
    got(api.PUT("/api/v1/groups/{group}/members/{user}", { params: { path }, body: { role: role as Role } }))
      .then(() => done(msg("settings.saved")), failed)
      .then(onChange);
  const remove = () =>
    confirm.ask({
      title: msg("settings.removeTitle", { n: m.user.name }),
      children: msg("settings.removeText"),
      yes: msg("settings.removeMember"),
      danger: true,
      act: async () => {
        await got(api.DELETE("/api/v1/groups/{group}/members/{user}", { params: { path } }));
        done(msg("settings.taken"));
        onChange();
      },
    });
  return (
    <tr>
      <td>
        {confirm.open}
        <span class="mono">{m.user.name}</span> {m.user.display && <span class="muted">{m.user.display}</span>}{" "}
        {m.user.id === me.value?.user.id && <Tag look="accent">{msg("account.you")}</Tag>}
      </td>
      <td>
        {mine ? (
          <select
            class="input"
            aria-label={`${msg("settings.role")}: ${m.user.name}`}
            value={m.role}
            onChange={(e) => void setRole(e.currentTarget.value)}
          >
            {given(group).map((r) => (
              <option key={r} value={r}>
                {roleName(r)}
              </option>
            ))}
          </select>
        ) : (
          roleName(m.role)
        )}
      </td>
      <td>
        <When time={m.since} />
      </td>
      {may && (
        <td>
          {mine && (
            <Button small look="danger" label={`${msg("settings.removeMember")}: ${m.user.name}`} onClick={remove}>
              {msg("settings.removeMember")}
            </Button>
          )}
        </td>
      )}
    </tr>
  );
}

function Add({ group, onAdded }: { group: Schema["Group"]; onAdded: () => void }) {
  const [name, setName] = useState("");
  const [role, setRole] = useState<Role>("reporter");
  const { send, busy, error } = useSend(async () => {
    const user = await userID(name.trim());
    await got(
      api.PUT("/api/v1/groups/{group}/members/{user}", { params: { path: { group: group.id, user } }, body: { role } }),
    );
    setName("");
    done(msg("settings.added"));
    onAdded();
  });
  return (
    <form class="stack tight" onSubmit={send}>
      <div class="settings-inline">
        <UserField value={name} onText={setName} required />
        <SelectField
          label={msg("settings.role")}
          value={role}
          onText={(r) => setRole(r as Role)}
          options={given(group).map((r): [string, string] => [r, roleName(r)])}
        />
        <Button type="submit" look="primary" aria-busy={busy || undefined}>
          {msg("settings.addMember")}
        </Button>
      </div>
      {error && <Problem error={error} />}
    </form>
  );
}
