import { useLocation } from "preact-iso";
import { useState } from "preact/hooks";
import { api, got } from "../api/client";
import { ways } from "../api/me";
import { done, TextField } from "../ui";
import { PasswordField } from "./password";
import { Said } from "./said";
import { Submit, useSend } from "./send";
import { welcome } from "./signin";
import { w } from "./words";

/** The first run: who has the link becomes the administrator. */
export function Setup({ link }: { link: string }) {
  const t = w();
  const { route } = useLocation();
  const [name, setName] = useState("");
  const [password, setPassword] = useState("");
  const { send, busy, error, fault } = useSend(async () => {
    const who = await got(api.POST("/api/v1/setup", { body: { link, name, password } }));
    if (ways.value) ways.value = { ...ways.value, setup: false };
    route("/", true); // the link is spent: going back does not lead to it
    welcome(who);
    done(t.setupDone);
  }, "name", "password");
  return (
    <form class="stack" onSubmit={send}>
      <p class="muted">{t.setupText}</p>
      <TextField label={t.name} hint={t.nameRules} error={fault("name")} value={name} onText={setName} name="username" autocomplete="username" autocapitalize="none" spellcheck={false} required autofocus />
      <PasswordField label={t.password} hint={t.rules} error={fault("password")} value={password} onText={setPassword} autocomplete="new-password" />
      {error !== undefined && <Said error={error} />}
      <Submit busy={busy}>{t.setupDo}</Submit>
    </form>
  );
}
