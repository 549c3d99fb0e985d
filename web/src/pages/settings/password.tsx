import { useState } from "preact/hooks";
import { Submit, useSend } from "../../features/users/form";
import { PasswordField } from "../../features/users/passwordfield";
import { api, got } from "../../shared/api/client";
import { me } from "../../shared/api/me";
import { msg } from "../../shared/i18n/messages";
import { Check, done, Problem } from "../../shared/ui";
import { Part } from "../../shared/ui/sections";

/** Password changes the password. */
export function Password() {
  const has = me.value!.user.account?.password ?? false;
  const [current, setCurrent] = useState("");
  const [password, setPassword] = useState("");
  const [revoke, setRevoke] = useState(false);
  const { send, busy, error, fault } = useSend(async () => {
    await got(
      api.PUT("/api/v1/users/{user}/password", {
        params: { path: { user: "me" } },
        body: { password, current: has ? current : undefined, revoke_tokens: revoke },
      }),
    );
    me.value = await got(api.GET("/api/v1/me"));
    setCurrent("");
    setPassword("");
    setRevoke(false);
    done(msg("settings.passwordSet"));
  }, "password");
  return (
    <Part title={msg("settings.tabs.password")} lead={has ? msg("settings.passwordSays") : msg("settings.noPassword")}>
      <form class="stack settings-form" onSubmit={send}>
        <input type="text" name="username" value={me.value!.user.name} autocomplete="username" hidden readOnly />
        {has && (
          <PasswordField
            label={msg("settings.current")}
            value={current}
            onText={setCurrent}
            autocomplete="current-password"
          />
        )}
        <PasswordField
          label={msg("settings.fresh")}
          hint={msg("account.rules")}
          error={fault("password")}
          value={password}
          onText={setPassword}
          autocomplete="new-password"
        />
        <Check
          label={msg("settings.revokeTokens")}
          hint={msg("settings.revokeTokensHint")}
          checked={revoke}
          onCheck={setRevoke}
        />
        {error && <Problem error={error} />}
        <Submit busy={busy}>{msg("settings.setPassword")}</Submit>
      </form>
    </Part>
  );
}
