import { api, got, type Schema } from "../../shared/api/client";
import { msg } from "../../shared/i18n/messages";
import { ActionButton, done, Tag, When } from "../../shared/ui";
import type { Server } from "./state";

/** begin goes to the sign-in page of a server. The browser returns to this view. */
async function begin(s: Server) {
  const back = here();
  const answer = s.kind
    ? api.POST("/api/v1/servers/{kind}/{namespace}/{name}/sign-in", {
        params: { path: resourceOf(s) },
        body: { server: s.name, back },
      })
    : api.POST("/api/v1/servers/operator/{name}/sign-in", { params: { path: { name: s.name } }, body: { back } });
  const { url } = await got(answer);
  if (!/^https?:$/.test(new URL(url).protocol)) throw new Error(url);
  location.assign(url);
}

async function signOut(s: Server) {
  const answer = s.kind
    ? api.DELETE("/api/v1/servers/{kind}/{namespace}/{name}/sign-in", {
        params: { path: resourceOf(s), query: { server: s.name } },
      })
    : api.DELETE("/api/v1/servers/operator/{name}/sign-in", { params: { path: { name: s.name } } });
  const { signedOut, revoked } = await got(answer);
  done(
    !signedOut
      ? msg("serverSignIn.wasOut")
      : revoked
        ? msg("serverSignIn.signedOut")
        : msg("serverSignIn.signedOutHere"),
  );
}

const resourceOf = (s: Server) => ({ kind: s.kind as "Ghost", namespace: s.namespace!, name: s.thing! });

/** here returns the address of this view without the result of an earlier sign-in. */
function here(): string {
  const query = new URLSearchParams(location.search);
  query.delete("signin");
  return location.pathname + (query.size ? `?${query}` : "");
}

/** wantsSignIn reports whether the server needs a sign-in first. */
export const wantsSignIn = (s: Server) =>
  s.state === "ready" && (s.signIn?.state === "needed" || s.signIn?.state === "ended");

export function SignInButton({ server, small }: { server: Server; small?: boolean }) {
  return (
    <ActionButton
      look="primary"
      small={small}
      icon="key"
      label={msg("serverSignIn.signInTo", { name: server.name })}
      act={() => begin(server)}
    >
      {msg("serverSignIn.signIn")}
    </ActionButton>
  );
}

/** SignIn shows the user's sign-in to a server, and signs out. */
export function SignIn({ server: s, onChange }: { server: Server; onChange: () => void }) {
  if (s.state !== "ready" || s.signIn?.state !== "signed_in") return null;
  return (
    <section class="stack tight">
      <h2>{msg("serverSignIn.title")}</h2>
      <p class="row">
        <Tag look="good">{msg("serverSignIn.signedIn")}</Tag>
        <span class="small muted">{msg("serverSignIn.says.signed_in")}</span>
      </p>
      <Given of={s.signIn} />
      <div>
        <ActionButton act={() => signOut(s).then(onChange)}>{msg("serverSignIn.signOut")}</ActionButton>
      </div>
    </section>
  );
}

function Given({ of: now }: { of: Schema["ServerSignIn"] }) {
  return (
    <dl class="facts">
      {now.issuer && (
        <>
          <dt>{msg("serverSignIn.at")}</dt>
          <dd class="mono">{now.issuer}</dd>
        </>
      )}
      {!!now.scopes?.length && (
        <>
          <dt>{msg("serverSignIn.scopes")}</dt>
          <dd class="mono">{now.scopes.join(" ")}</dd>
        </>
      )}
      {now.expires && (
        <>
          <dt>{msg("serverSignIn.expires")}</dt>
          <dd>
            <When time={now.expires} />
            {now.renewed && ` (${msg("serverSignIn.renewed")})`}
          </dd>
        </>
      )}
    </dl>
  );
}
