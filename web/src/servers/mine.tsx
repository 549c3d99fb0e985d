import { api, got, useAsked, type Schema } from "../api/client";
import { ActionButton, done, When } from "../ui";
import { w } from "./signwords";

/** Where one is signed in, also to servers that are gone or defined differently by now, and the way out. */
export function MySignIns() {
  const t = w();
  const asked = useAsked((signal) => got(api.GET("/api/v1/servers/sign-ins", { signal })), []);
  const all = asked.data?.items;
  if (!all?.length) return null;
  return (
    <details class="stack tight">
      <summary>{t.mine(all.length)}</summary>
      <p class="small muted">{t.mineSays}</p>
      <ul class="servers-mine">{all.map((one) => <One key={one.id} one={one} onGone={asked.again} />)}</ul>
    </details>
  );
}

function One({ one, onGone }: { one: Schema["MySignIn"]; onGone: () => Promise<void> }) {
  const t = w();
  const now = one.signIn;
  const leave = async () => {
    const { revoked } = await got(api.DELETE("/api/v1/servers/sign-ins/{id}", { params: { path: { id: one.id } } }));
    done(revoked ? t.signedOut : t.signedOutHere);
    await onGone();
  };
  return (
    <li>
      <span class="grow">
        <span class="mono">{one.server || t.unreadable}</span><br />
        <span class="small muted">{now.state === "signed_in" ? t.signedIn : t.ended}{now.since && <>, <When time={now.since} /></>}</span>
      </span>
      <ActionButton small label={`${t.signOut}: ${one.server || one.id}`} act={leave}>{t.signOut}</ActionButton>
    </li>
  );
}
