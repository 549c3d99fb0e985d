import { useState } from "preact/hooks";
import { Submit, useSend } from "../../features/users/form";
import { groupName, roleName, useUserNames } from "../../features/users/users";
import { api, got } from "../../shared/api/client";
import { isAdmin, me } from "../../shared/api/me";
import { formatTime } from "../../shared/i18n/format";
import { msg } from "../../shared/i18n/messages";
import { done, Problem, Tag, TextField } from "../../shared/ui";
import { Part } from "../../shared/ui/sections";
import { useUnsaved } from "../../shared/ui/unsaved";

/** Profile shows and edits the user's profile. */
export function Profile() {
  useUserNames();

  const user = me.value!.user;
  const [display, setDisplay] = useState(user.display);
  const [email, setEmail] = useState(user.account?.email ?? "");
  const { send, busy, error, fault } = useSend(
    async () => {
      const now = await got(
        api.PATCH("/api/v1/users/{user}", { params: { path: { user: "me" } }, body: { display, email } }),
      );
      me.value = { ...me.value!, user: now };
      done(msg("settings.saved"));
    },
    "display",
    "email",
  );
  useUnsaved(display !== user.display || email !== (user.account?.email ?? ""));
  return (
    <Part title={msg("settings.tabs.profile")}>
      <dl class="facts">
        <dt>{msg("settings.name")}</dt>
        <dd>
          <span class="mono">{user.name}</span> {isAdmin.value && <Tag look="accent">{msg("settings.admin")}</Tag>}
        </dd>
        {user.account && (
          <>
            <dt>{msg("settings.since")}</dt>
            <dd>{formatTime(user.account.created)}</dd>
          </>
        )}
        <dt>{msg("settings.memberOf")}</dt>
        <dd>
          {me.value!.groups.length === 0
            ? msg("settings.noGroups")
            : me.value!.groups.map((g) => (
                <div key={g.group}>
                  <a href={`/settings/groups/${g.group}`}>{groupName(g.group)}</a>{" "}
                  <span class="muted">{roleName(g.role)}</span>
                </div>
              ))}
        </dd>
      </dl>
      <form class="stack settings-form" onSubmit={send}>
        <TextField
          label={msg("settings.display")}
          hint={msg("settings.displayHint")}
          error={fault("display")}
          value={display}
          onText={setDisplay}
          maxLength={200}
          autocomplete="name"
        />
        <TextField
          label={msg("settings.email")}
          hint={msg("settings.emailHint")}
          error={fault("email")}
          value={email}
          onText={setEmail}
          type="email"
          maxLength={254}
          autocomplete="email"
        />
        {error && <Problem error={error} />}
        <Submit busy={busy}>{msg("settings.save")}</Submit>
      </form>
    </Part>
  );
}
