import { useState } from "preact/hooks";
import { groupName, roleName, usePeople } from "../account/people";
import { Submit, useSend } from "../account/send";
import { api, got } from "../api/client";
import { isAdmin, me } from "../api/me";
import { done, Problem, Tag, TextField } from "../ui";
import { moment } from "../words";
import { Part } from "./sections";
import { w } from "./words";

/** Who one is here. */
export function Profile() {
  usePeople();
  const t = w();
  const user = me.value!.user;
  const [display, setDisplay] = useState(user.display);
  const [email, setEmail] = useState(user.account?.email ?? "");
  const { send, busy, error, fault } = useSend(async () => {
    const now = await got(api.PATCH("/api/v1/users/{user}", { params: { path: { user: "me" } }, body: { display, email } }));
    me.value = { ...me.value!, user: now };
    done(t.saved);
  }, "display", "email");
  return (
    <Part title={t.tabs.profile}>
      <dl class="facts">
        <dt>{t.name}</dt><dd><span class="mono">{user.name}</span> {isAdmin.value && <Tag look="accent">{t.admin}</Tag>}</dd>
        {user.account && <><dt>{t.since}</dt><dd>{moment(user.account.created)}</dd></>}
        <dt>{t.memberOf}</dt>
        <dd>{me.value!.groups.length === 0 ? t.noGroups : me.value!.groups.map((g) => <div key={g.group}><a href={`/settings/groups/${g.group}`}>{groupName(g.group)}</a> <span class="muted">{roleName(g.role)}</span></div>)}</dd>
      </dl>
      <form class="stack settings-form" onSubmit={send}>
        <TextField label={t.display} hint={t.displayHint} error={fault("display")} value={display} onText={setDisplay} maxLength={200} autocomplete="name" />
        <TextField label={t.email} hint={t.emailHint} error={fault("email")} value={email} onText={setEmail} type="email" maxLength={254} autocomplete="email" />
        {error && <Problem error={error} />}
        <Submit busy={busy}>{t.save}</Submit>
      </form>
    </Part>
  );
}
