import { useState } from "preact/hooks";
import { PasswordField } from "../account/password";
import { Submit, useSend } from "../account/send";
import { w as door } from "../account/words";
import { api, got } from "../api/client";
import { me } from "../api/me";
import { done, Problem } from "../ui";
import { Part } from "./sections";
import { w } from "./words";

/** Another password, with what it signs out. */
export function Password() {
  const t = w();
  const has = me.value!.user.account?.password ?? false;
  const [current, setCurrent] = useState("");
  const [password, setPassword] = useState("");
  const { send, busy, error, fault } = useSend(async () => {
    await got(api.PUT("/api/v1/users/{user}/password", { params: { path: { user: "me" } }, body: { password, current: has ? current : undefined } }));
    me.value = await got(api.GET("/api/v1/me"));
    setCurrent("");
    setPassword("");
    done(t.passwordSet);
  }, "password");
  return (
    <Part title={t.tabs.password} lead={has ? t.passwordSays : t.noPassword}>
      <form class="stack settings-form" onSubmit={send}>
        <input type="text" name="username" value={me.value!.user.name} autocomplete="username" hidden readOnly />
        {has && <PasswordField label={t.current} value={current} onText={setCurrent} autocomplete="current-password" />}
        <PasswordField label={t.fresh} hint={door().rules} error={fault("password")} value={password} onText={setPassword} autocomplete="new-password" />
        {error && <Problem error={error} />}
        <Submit busy={busy}>{t.setPassword}</Submit>
      </form>
    </Part>
  );
}
