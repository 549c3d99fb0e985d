import { useState } from "preact/hooks";
import { api, got, signedOut, type Schema } from "../api/client";
import { me, ways } from "../api/me";
import { TextField } from "../ui";
import { PasswordField } from "./password";
import { forget } from "./people";
import { Said } from "./said";
import { Submit, useSend } from "./send";
import { w } from "./words";

/** By name and password, or by the provider. It stays at the address that one wanted to go to. */
export function SignIn({ stale }: { stale: boolean }) {
  const t = w();
  if (ways.value?.setup) {
    return (
      <>
        <div class="note warn"><strong>{t.vacant}</strong>{t.vacantText}</div>
        <Provider />
      </>
    );
  }
  return (
    <>
      {stale && <div class="note">{t.hasAdmin}</div>}
      <Refused />
      {ways.value?.password !== false && <ByPassword />}
      {ways.value?.provider && ways.value.password && <p class="account-or muted small">{t.or}</p>}
      <Provider />
    </>
  );
}

function ByPassword() {
  const t = w();
  const [name, setName] = useState("");
  const [password, setPassword] = useState("");
  const { send, busy, error } = useSend(async () => welcome(await got(api.POST("/api/v1/login", { body: { name, password } }))));
  return (
    <form class="stack" onSubmit={send}>
      <TextField label={t.name} value={name} onText={setName} name="username" autocomplete="username" autocapitalize="none" spellcheck={false} required autofocus />
      <PasswordField label={t.password} value={password} onText={setPassword} autocomplete="current-password" />
      {error !== undefined && <Said error={error} />}
      <Submit busy={busy}>{t.signIn}</Submit>
      <p class="small muted">{t.forgotten}</p>
    </form>
  );
}

/** Goes to the provider, which sends the browser back to where it is now. */
function Provider() {
  const href = ways.value?.provider;
  if (!href) return null;
  const back = location.pathname.startsWith("/setup/") ? "/" : location.pathname + kept(location.search);
  // With a target the router of the page leaves the link to the browser: it leads out of the page.
  return <a class="button" target="_top" href={`${href}?back=${encodeURIComponent(back)}`}>{w().provider}</a>;
}

/** A query without what the sign-in itself put there. */
function kept(search: string): string {
  const query = new URLSearchParams(search);
  query.delete("refused");
  query.delete("request");
  return query.size ? `?${query}` : "";
}

/** Why the provider sent nobody: the hub says it in the address, as a code. */
function Refused() {
  const query = new URLSearchParams(location.search);
  const code = query.get("refused");
  if (!code || !/^[a-z_]{1,40}$/.test(code)) return null;
  const t = w();
  const request = query.get("request") ?? "";
  return (
    <div class="note bad" role="alert">
      <strong>{t.refused}</strong>
      {t.reasons[code] ?? t.other(code)}
      {/^[\w-]{1,64}$/.test(request) && <span class="small muted">{t.request}<code>{request}</code></span>}
    </div>
  );
}

/** Lets somebody in who has just signed in. */
export function welcome(who: Schema["Me"]) {
  forget();
  if (me.value && me.value.user.id !== who.user.id) return location.reload(); // what is in memory is somebody else's
  me.value = who;
  signedOut.value = false;
}
