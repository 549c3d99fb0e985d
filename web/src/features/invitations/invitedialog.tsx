import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { api, got, type Schema } from "../../shared/api/client";
import { hasRole, isAdmin } from "../../shared/api/me";
import { formatTime } from "../../shared/i18n/format";
import { msg } from "../../shared/i18n/messages";
import { Button, Copy, Dialog, Problem, SelectField, TextField } from "../../shared/ui";
import { useSend } from "../users/form";
import { roleName, useUserNames } from "../users/users";

type Role = Schema["MemberRole"]["role"];
type Made = Schema["MadeInvitation"];

const roles: Role[] = ["reporter", "developer", "maintainer", "owner"];
const lifetimes = [1, 3, 7, 14, 30];

interface InviteDialogProps {
  /** The group to which the user invites. Without it, administrators choose one, or none. */
  group?: Schema["Group"];
  onMade: () => void;
  onClose: () => void;
}

/** InviteDialog creates an invitation, and shows its link once. */
export function InviteDialog({ group, onMade, onClose }: InviteDialogProps) {
  const { groups } = useUserNames();
  const [chosen, setChosen] = useState(group?.id ?? "");
  const [role, setRole] = useState<Role>("reporter");
  const [note, setNote] = useState("");
  const [uses, setUses] = useState("1");
  const [days, setDays] = useState("7");
  const [made, setMade] = useState<Made>();
  const { send, busy, error, fault } = useSend(
    async () => {
      const body = {
        group: chosen || undefined,
        role: chosen ? role : undefined,
        note: note.trim() || undefined,
        uses: Number(uses),
        days: Number(days),
      };
      setMade(await got(api.POST("/api/v1/invitations", { body })));
      onMade();
    },
    "note",
    "uses",
    "role",
  );
  const close = () => busy || onClose(); // nobody would have the link
  return (
    <Dialog
      title={group ? msg("invite.toGroup", { group: group.display || group.name }) : msg("invite.dialog")}
      firm={busy || !!made}
      onClose={close}
      actions={
        made ? (
          <Button look="primary" onClick={onClose}>
            {msg("invite.done")}
          </Button>
        ) : (
          <>
            <Button onClick={close}>{msg("ui.cancel")}</Button>
            <Button type="submit" form="new-invitation" look="primary" aria-busy={busy || undefined}>
              {msg("invite.create")}
            </Button>
          </>
        )
      }
    >
      {made ? (
        <MadeLink made={made} />
      ) : (
        <form id="new-invitation" class="stack" onSubmit={send} autocomplete="off">
          <p class="muted">{msg("invite.lead")}</p>
          {!group && isAdmin.value && (
            <SelectField
              label={msg("invite.group")}
              value={chosen}
              onText={setChosen}
              options={[
                ["", msg("invite.noGroup")],
                ...[...groups.values()].map((g): [string, string] => [g.id, g.display || g.name]),
              ]}
            />
          )}
          {chosen && (
            <SelectField
              label={msg("invite.role")}
              value={role}
              onText={(r) => setRole(r as Role)}
              options={roles.filter((r) => hasRole(chosen, r)).map((r): [string, string] => [r, roleName(r)])}
            />
          )}
          <TextField
            label={msg("invite.note")}
            hint={msg("invite.noteHint")}
            error={fault("note")}
            value={note}
            onText={setNote}
            maxLength={200}
          />
          <TextField
            label={msg("invite.uses")}
            error={fault("uses")}
            type="number"
            min={1}
            max={50}
            required
            value={uses}
            onText={setUses}
          />
          <SelectField
            label={msg("invite.lasts")}
            value={days}
            onText={setDays}
            options={lifetimes.map((d): [string, string] => [String(d), msg("invite.days", { count: d })])}
          />
          {error !== undefined && <Problem error={error} />}
        </form>
      )}
    </Dialog>
  );
}

/** MadeLink shows the link of a new invitation. The hub does not know it any more. */
function MadeLink({ made }: { made: Made }) {
  const address = `${location.origin}/invite/${made.link}`;
  const input = useRef<HTMLInputElement>(null);
  useLayoutEffect(() => input.current?.focus(), []); // the button that had the focus is gone
  return (
    <>
      <p role="status">{msg("invite.made", { count: made.uses })}</p>
      <div class="row">
        <input
          ref={input}
          class="input invite-link"
          readOnly
          value={address}
          aria-label={msg("invite.link")}
          onFocus={(e) => e.currentTarget.select()}
        />
        <Copy text={address} label={msg("invite.copy")} />
      </div>
      <p class="note warn">{msg("invite.once")}</p>
      <p class="small muted">{msg("invite.madeText", { time: formatTime(made.expires) })}</p>
    </>
  );
}
