import { useState } from "preact/hooks";
import { useLocation } from "preact-iso";
import { Submit, useSend } from "../../features/users/form";
import { PasswordField } from "../../features/users/passwordfield";
import { api, got } from "../../shared/api/client";
import { ways } from "../../shared/api/me";
import { msg } from "../../shared/i18n/messages";
import { done, TextField } from "../../shared/ui";
import { welcome } from "./signin";
import { SignInMessage } from "./signinerror";

/** Setup creates the first administrator with the printed link. */
export function Setup({ link }: { link: string }) {
  const { route } = useLocation();
  const [name, setName] = useState("");
  const [password, setPassword] = useState("");
  const { send, busy, error, fault } = useSend(
    async () => {
      const who = await got(api.POST("/api/v1/setup", { body: { link, name, password } }));
      if (ways.value) ways.value = { ...ways.value, setup: false };
      route("/", true); // the link is used up, so the back button must not return here
      welcome(who);
      done(msg("account.setupDone"));
    },
    "name",
    "password",
  );
  return (
    <form class="stack" onSubmit={send}>
      <p class="muted">{msg("account.setupText")}</p>
      <TextField
        label={msg("account.name")}
        hint={msg("account.nameRules")}
        error={fault("name")}
        value={name}
        onText={setName}
        name="username"
        autocomplete="username"
        autocapitalize="none"
        spellcheck={false}
        required
        autofocus
      />
      <PasswordField
        label={msg("account.password")}
        hint={msg("account.rules")}
        error={fault("password")}
        value={password}
        onText={setPassword}
        autocomplete="new-password"
      />
      {error !== undefined && <SignInMessage error={error} />}
      <Submit busy={busy}>{msg("account.setupDo")}</Submit>
    </form>
  );
}
