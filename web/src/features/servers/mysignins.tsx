import { api, got, useLoad, type Schema } from "../../shared/api/client";
import { msg } from "../../shared/i18n/messages";
import { ActionButton, done, When } from "../../shared/ui";

/** MySignIns lists the user's sign-ins, including those to deleted or changed servers, and signs out. */
export function MySignIns() {
  const load = useLoad((signal) => got(api.GET("/api/v1/servers/sign-ins", { signal })), []);
  const all = load.data?.items;
  if (!all?.length) return null;
  return (
    <details class="stack tight">
      <summary>{msg("serverSignIn.mine", { n: all.length })}</summary>
      <p class="small muted">{msg("serverSignIn.mineSays")}</p>
      <ul class="servers-mine">
        {all.map((one) => (
          <One key={one.id} one={one} onGone={load.again} />
        ))}
      </ul>
    </details>
  );
}

function One({ one, onGone }: { one: Schema["MySignIn"]; onGone: () => Promise<void> }) {
  const now = one.signIn;
  const signOut = async () => {
    const { revoked } = await got(api.DELETE("/api/v1/servers/sign-ins/{id}", { params: { path: { id: one.id } } }));
    done(revoked ? msg("serverSignIn.signedOut") : msg("serverSignIn.signedOutHere"));
    await onGone();
  };
  return (
    <li>
      <span class="grow">
        <span class="mono">{one.server || msg("serverSignIn.unreadable")}</span>
        <br />
        <span class="small muted">
          {now.state === "signed_in" ? msg("serverSignIn.signedIn") : msg("serverSignIn.ended")}
          {now.since && (
            <>
              , <When time={now.since} />
            </>
          )}
        </span>
      </span>
      <ActionButton small label={`${msg("serverSignIn.signOut")}: ${one.server || one.id}`} act={signOut}>
        {msg("serverSignIn.signOut")}
      </ActionButton>
    </li>
  );
}
