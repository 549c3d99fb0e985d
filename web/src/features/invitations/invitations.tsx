import { useEffect, useRef, useState } from "preact/hooks";
import { api, got, type Pages, type Schema, usePages } from "../../shared/api/client";
import { me } from "../../shared/api/me";
import { count, formatTime } from "../../shared/i18n/format";
import { msg } from "../../shared/i18n/messages";
import { Button, done, More, Problem, TableWrap, Tag, useConfirm } from "../../shared/ui";
import { groupName, roleName, useUserNames } from "../users/users";
import { InviteDialog } from "./invitedialog";
import "./invitations.css";

type Invitation = Schema["Invitation"];

/** mayInvite reports whether the user may invite to a group, or to the hub. */
export function mayInvite(group?: string): boolean {
  const invite = me.value?.can.invite ?? [];
  return invite.includes("*") || (group !== undefined && invite.includes(group));
}

/** useInvitations loads the invitations to a group, or all of the hub. */
const useInvitations = (group?: string) =>
  usePages(
    (after, signal) => got(api.GET("/api/v1/invitations", { params: { query: { group, after, limit: 100 } }, signal })),
    [group],
  );

/** Invite is a button that opens the dialog for a new invitation. */
export function Invite({ group, onMade }: { group?: Schema["Group"]; onMade: () => void }) {
  const [open, setOpen] = useState(false);
  return (
    <>
      <Button icon="plus" onClick={() => setOpen(true)}>
        {msg("invite.invite")}
      </Button>
      {open && <InviteDialog group={group} onMade={onMade} onClose={() => setOpen(false)} />}
    </>
  );
}

/** Invitations lists the invitations to a group, or all of the hub. It shows nothing if there are none. */
export function Invitations({ group, change }: { group?: string; change: number }) {
  const load = useInvitations(group);
  useEffect(() => {
    if (change) void load.again();
  }, [change]);
  if (load.error) return <Problem error={load.error} again={() => void load.again()} />;
  if (!load.data?.length) return null;
  const open = load.data.filter((i) => i.state === "open").length;
  const n = load.more ? `${count(open)}+` : open;
  return (
    <details class="invitations" open={change > 0 || undefined}>
      <summary>{msg("invite.list", { n })}</summary>
      <Table invitations={load.data} load={load} groups={!group} />
    </details>
  );
}

function Table({ invitations, load, groups }: { invitations: Invitation[]; load: Pages<Invitation>; groups: boolean }) {
  const confirm = useConfirm();
  const box = useRef<HTMLDivElement>(null);
  const revoke = (i: Invitation) =>
    confirm.ask({
      title: msg("invite.revokeTitle"),
      children: msg("invite.revokeText"),
      yes: msg("invite.revoke"),
      danger: true,
      act: async () => {
        await got(api.DELETE("/api/v1/invitations/{invitation}", { params: { path: { invitation: i.id } } }));
        done(msg("invite.revoked"));
        const summary = box.current?.closest("details")?.querySelector("summary");
        load.change((all) => all.map((o) => (o.id === i.id ? { ...i, state: "revoked" } : o)));
        requestAnimationFrame(() => summary?.focus()); // the button is gone
      },
    });
  return (
    <div ref={box}>
      {confirm.open}
      <TableWrap label={msg("invite.title")}>
        <table class="table settings-middle">
          <thead>
            <tr>
              <th scope="col">{msg("invite.for")}</th>
              <th scope="col">{msg("invite.state")}</th>
              <th scope="col">
                <span class="visually-hidden">{msg("invite.actions")}</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {invitations.map((i) => (
              <tr key={i.id}>
                <td>
                  {i.note || <span class="muted">{msg("invite.noNote")}</span>}
                  <br />
                  <span class="small muted">
                    {groups && (
                      <>
                        <To group={i.group} /> ·{" "}
                      </>
                    )}
                    {i.role && <>{roleName(i.role)} · </>}
                    {msg("invite.by", { name: i.inviterName, time: formatTime(i.created) })}
                  </span>
                </td>
                <td>
                  <State i={i} />
                </td>
                <td>
                  {(i.state === "open" || i.state === "suspended") && (
                    <Button
                      small
                      look="danger"
                      label={msg("invite.revokeOf", { name: i.note || formatTime(i.created) })}
                      onClick={() => revoke(i)}
                    >
                      {msg("invite.revoke")}
                    </Button>
                  )}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </TableWrap>
      <More pages={load} />
    </div>
  );
}

function To({ group }: { group?: string }) {
  useUserNames();
  return <>{group ? groupName(group) : msg("invite.hubOnly")}</>;
}

const looks = { open: "good", used: "", expired: "", revoked: "bad", suspended: "warn" } as const;

function State({ i }: { i: Invitation }) {
  return (
    <>
      <Tag look={looks[i.state] || undefined}>{msg(`invite.states.${i.state}`)}</Tag>{" "}
      <span class="small muted">
        {msg("invite.usedOf", { used: i.used, uses: i.uses })}
        {i.state === "open" && <> · {msg("invite.until", { time: formatTime(i.expires) })}</>}
      </span>
      {i.users.length > 0 && (
        <div class="small">{msg("invite.usedBy", { names: i.users.map((u) => u.name).join(", ") })}</div>
      )}
      {i.state === "suspended" && <div class="small muted">{msg("invite.suspendedText")}</div>}
    </>
  );
}
