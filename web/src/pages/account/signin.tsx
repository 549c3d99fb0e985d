import { useState } from "preact/hooks";
import { Submit, useSend } from "../../features/users/form";
import { PasswordField } from "../../features/users/passwordfield";
import { forget } from "../../features/users/users";
import { api, got, signedOut, type Schema } from "../../shared/api/client";
import { me, ways } from "../../shared/api/me";
import { findMsg, msg } from "../../shared/i18n/messages";
import { TextField } from "../../shared/ui";
import { SignInMessage } from "./signinerror";

/** SignIn signs in by password or with the provider, and then shows the requested page. */
export function SignIn({ stale }: { stale: boolean }) {
  if (ways.value?.setup) {
    return (
      <>
        <div class="note warn">
          <strong>{msg("account.vacant")}</strong>
          {msg("account.vacantText")}
        </div>
        <Provider />
      </>
    );
  }
  return (
    <>
      {stale && <div class="note">{msg("account.hasAdmin")}</div>}
      <Refused />
      {ways.value?.password !== false && <ByPassword />}
      {ways.value?.provider && ways.value.password && <p class="account-or muted small">{msg("account.or")}</p>}
      <Provider />
    </>
  );
}

/** sendWithRetry sends a request with a password, and sends it once more if the hub has too many of them. */
export async function sendWithRetry<A extends { error?: { code: string }; response: Response }>(
  send: () => Promise<A>,
) {
  const first = await send();
  if (first.error?.code !== "busy") return first;
  const seconds = Math.min(Number(first.response.headers.get("Retry-After")) || 5, 10);
  await new Promise((f) => setTimeout(f, seconds * 1000 * (1 + Math.random() / 2))); // not all at once
  return send();
}

function ByPassword() {
  const [name, setName] = useState("");
  const [password, setPassword] = useState("");
  const { send, busy, error } = useSend(async () =>
    welcome(await got(sendWithRetry(() => api.POST("/api/v1/login", { body: { name, password } })))),
  );
  return (
    <form class="stack" onSubmit={send}>
      <TextField
        label={msg("account.name")}
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
        value={password}
        onText={setPassword}
        autocomplete="current-password"
      />
      {error !== undefined && <SignInMessage error={error} />}
      <Submit busy={busy}>{msg("account.signIn")}</Submit>
      <p class="small muted">{msg("account.forgotten")}</p>
    </form>
  );
}

/** Provider goes to the sign-in provider, which returns the browser to this address. */
export function Provider() {
  const href = ways.value?.provider;
  if (!href) return null;
  const back = location.pathname.startsWith("/setup/") ? "/" : location.pathname + returnPath(location.search);
  // The target makes the router leave the link to the browser.
  return (
    <a class="button" target="_top" href={`${href}?back=${encodeURIComponent(back)}`}>
      {msg("account.provider")}
    </a>
  );
}

/** returnPath returns the query without the parameters of the sign-in. */
function returnPath(search: string): string {
  const query = new URLSearchParams(search);
  query.delete("refused");
  query.delete("request");
  return query.size ? `?${query}` : "";
}

/** Refused shows the error code that the provider's sign-in put into the address. */
export function Refused() {
  const query = new URLSearchParams(location.search);
  const code = query.get("refused");
  if (!code || !/^[a-z_]{1,40}$/.test(code)) return null;

  const request = query.get("request") ?? "";
  return (
    <div class="note bad" role="alert">
      <strong>{msg("account.refused")}</strong>
      {findMsg("account.reasons", code) ?? msg("account.other", { code })}
      {/^[\w-]{1,64}$/.test(request) && (
        <span class="small muted">
          {msg("account.request")}
          <code>{request}</code>
        </span>
      )}
    </div>
  );
}

/** welcome shows the app after a sign-in. */
export function welcome(who: Schema["Me"]) {
  forget();
  if (me.value && me.value.user.id !== who.user.id) return location.reload(); // the memory belongs to another user
  me.value = who;
  signedOut.value = false;
}
