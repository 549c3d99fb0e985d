import { useState } from "preact/hooks";
import { browserOf } from "../../features/settings/signins";
import { TokenTable, useTokens } from "../../features/settings/tokens";
import { useSend } from "../../features/users/form";
import { PasswordField } from "../../features/users/passwordfield";
import { api, got, type Schema, useLoad } from "../../shared/api/client";
import { msg } from "../../shared/i18n/messages";
import { ActionButton, Button, Check, Dialog, done, Problem, Shown, TextField, When } from "../../shared/ui";

type User = Schema["User"];

/** MakeUser creates an account. */
export function MakeUser({ onMade, onClose }: { onMade: () => void; onClose: () => void }) {
  const [name, setName] = useState("");
  const [display, setDisplay] = useState("");
  const [email, setEmail] = useState("");
  const [password, setPassword] = useState("");
  const [admin, setAdmin] = useState(false);
  const { send, busy, error, fault } = useSend(
    async () => {
      await got(api.POST("/api/v1/users", { body: { name, display, email, password: password || undefined, admin } }));
      done(msg("admin.made", { n: name }));
      onMade();
      onClose();
    },
    "name",
    "display",
    "email",
    "password",
  );
  return (
    <Dialog
      title={msg("admin.makeUser")}
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>{msg("admin.back")}</Button>
          <Button type="submit" form="make-user" look="primary" aria-busy={busy || undefined}>
            {msg("admin.makeUser")}
          </Button>
        </>
      }
    >
      <form id="make-user" class="stack" onSubmit={send} autocomplete="off">
        <TextField
          label={msg("admin.name")}
          hint={msg("account.nameRules")}
          error={fault("name")}
          value={name}
          onText={setName}
          required
          maxLength={64}
          autocapitalize="none"
          spellcheck={false}
          autofocus
        />
        <TextField
          label={msg("admin.display")}
          error={fault("display")}
          value={display}
          onText={setDisplay}
          maxLength={200}
        />
        <TextField
          label={msg("admin.email")}
          error={fault("email")}
          value={email}
          onText={setEmail}
          type="email"
          maxLength={254}
        />
        <PasswordField
          label={msg("admin.password")}
          hint={`${msg("account.rules")} ${msg("admin.passwordHint")}`}
          error={fault("password")}
          value={password}
          onText={setPassword}
          autocomplete="new-password"
          required={false}
        />
        <Check label={msg("admin.isAdmin")} hint={msg("admin.isAdminHint")} checked={admin} onCheck={setAdmin} />
        {error && <Problem error={error} />}
      </form>
    </Dialog>
  );
}

/** ResetPassword sets a new password for a user. */
export function ResetPassword({ u, onClose }: { u: User; onClose: () => void }) {
  const [password, setPassword] = useState("");
  const [revoke, setRevoke] = useState(false);
  const { send, busy, error, fault } = useSend(async () => {
    await got(
      api.PUT("/api/v1/users/{user}/password", {
        params: { path: { user: u.id } },
        body: { password, revoke_tokens: revoke },
      }),
    );
    done(msg("admin.passwordSet"));
    onClose();
  }, "password");
  return (
    <Dialog
      title={`${msg("admin.setPassword")}: ${u.name}`}
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>{msg("admin.back")}</Button>
          <Button type="submit" form="reset-password" look="primary" aria-busy={busy || undefined}>
            {msg("admin.setPassword")}
          </Button>
        </>
      }
    >
      <form id="reset-password" class="stack" onSubmit={send} autocomplete="off">
        <p class="muted">{msg("admin.setPasswordText")}</p>
        <PasswordField
          label={msg("admin.password")}
          hint={msg("account.rules")}
          error={fault("password")}
          value={password}
          onText={setPassword}
          autocomplete="new-password"
        />
        <Check
          label={msg("admin.revokeTokens")}
          hint={msg("admin.revokeTokensHint")}
          checked={revoke}
          onCheck={setRevoke}
        />
        {error && <Problem error={error} />}
      </form>
    </Dialog>
  );
}

/** WaysIn lists the tokens and browsers of a user. */
export function WaysIn({ u, onClose }: { u: User; onClose: () => void }) {
  const tokens = useTokens(u.id);
  const logins = useLoad(
    (signal) => got(api.GET("/api/v1/users/{user}/sign-ins", { params: { path: { user: u.id } }, signal })),
    [u.id],
  );
  const end = async () => {
    await got(api.DELETE("/api/v1/users/{user}/sign-ins", { params: { path: { user: u.id } } }));
    await logins.again();
    done(msg("admin.ended"));
  };
  return (
    <Dialog
      wide
      title={msg("admin.tokensOf", { n: u.name })}
      onClose={onClose}
      actions={<Button onClick={onClose}>{msg("admin.back")}</Button>}
    >
      <Shown asked={tokens}>
        {({ items }) =>
          items.length === 0 ? (
            <p class="muted">{msg("admin.noTokens")}</p>
          ) : (
            <TokenTable user={u.id} tokens={items} onEnd={() => void tokens.again()} />
          )
        }
      </Shown>
      <h3>{msg("admin.signIns")}</h3>
      <Shown asked={logins}>
        {({ items }) =>
          items.length === 0 ? (
            <p class="muted">{msg("admin.noSignIns")}</p>
          ) : (
            <>
              <ul class="settings-list-rows">
                {items.map((l, i) => (
                  <li key={i} title={l.agent}>
                    <span class="grow">{browserOf(l.agent)}</span>
                    <When time={l.seen} />
                  </li>
                ))}
              </ul>
              <div>
                <ActionButton act={end}>{msg("admin.endSignIns")}</ActionButton>
              </div>
            </>
          )
        }
      </Shown>
    </Dialog>
  );
}
