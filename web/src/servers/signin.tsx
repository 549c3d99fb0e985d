import { api, got, type Schema } from "../api/client";
import { ActionButton, done, Tag, When } from "../ui";
import type { Server } from "./state";
import { w } from "./signwords";

/** Goes to where one signs in to a server. The browser comes back to this view. */
async function begin(s: Server) {
  const back = here();
  const answer = s.kind
    ? api.POST("/api/v1/servers/{kind}/{namespace}/{name}/sign-in", { params: { path: placeOf(s) }, body: { server: s.name, back } })
    : api.POST("/api/v1/servers/operator/{name}/sign-in", { params: { path: { name: s.name } }, body: { back } });
  const { url } = await got(answer);
  if (!/^https?:$/.test(new URL(url).protocol)) throw new Error(url);
  location.assign(url);
}

async function leave(s: Server) {
  const answer = s.kind
    ? api.DELETE("/api/v1/servers/{kind}/{namespace}/{name}/sign-in", { params: { path: placeOf(s), query: { server: s.name } } })
    : api.DELETE("/api/v1/servers/operator/{name}/sign-in", { params: { path: { name: s.name } } });
  const { signedOut, revoked } = await got(answer);
  done(!signedOut ? w().wasOut : revoked ? w().signedOut : w().signedOutHere);
}

const placeOf = (s: Server) => ({ kind: s.kind as "Ghost", namespace: s.namespace!, name: s.thing! });

/** This view, without what was told of the last sign-in. */
function here(): string {
  const query = new URLSearchParams(location.search);
  query.delete("signin");
  return location.pathname + (query.size ? `?${query}` : "");
}

/** Whether one has to sign in before the server can be used. */
export const wantsSignIn = (s: Server) => s.state === "ready" && (s.signIn?.state === "needed" || s.signIn?.state === "ended");

export function SignInButton({ server, small }: { server: Server; small?: boolean }) {
  return <ActionButton look="primary" small={small} icon="key" label={w().signInTo(server.name)} act={() => begin(server)}>{w().signIn}</ActionButton>;
}

/** One's sign-in to a server, what it is good for, and the way out. */
export function SignIn({ server: s, onChange }: { server: Server; onChange: () => void }) {
  const t = w();
  if (s.state !== "ready" || s.signIn?.state !== "signed_in") return null;
  return (
    <section class="stack tight">
      <h2>{t.title}</h2>
      <p class="row"><Tag look="good">{t.signedIn}</Tag><span class="small muted">{t.says.signed_in}</span></p>
      <Given of={s.signIn} />
      <div><ActionButton act={() => leave(s).then(onChange)}>{t.signOut}</ActionButton></div>
    </section>
  );
}

function Given({ of: now }: { of: Schema["ServerSignIn"] }) {
  const t = w();
  return (
    <dl class="facts">
      {now.issuer && <><dt>{t.at}</dt><dd class="mono">{now.issuer}</dd></>}
      {!!now.scopes?.length && <><dt>{t.scopes}</dt><dd class="mono">{now.scopes.join(" ")}</dd></>}
      {now.expires && <><dt>{t.expires}</dt><dd><When time={now.expires} />{now.renewed && ` (${t.renewed})`}</dd></>}
    </dl>
  );
}
