import { useState } from "preact/hooks";
import { PasswordField } from "../account/password";
import { useSend } from "../account/send";
import { w as door } from "../account/words";
import { api, got, type Schema, useAsked } from "../api/client";
import { browserOf } from "../settings/signins";
import { TokenTable, useTokens } from "../settings/tokens";
import { ActionButton, Button, Check, Dialog, done, Problem, Shown, TextField, When } from "../ui";
import { w } from "./words";

type User = Schema["User"];

/** Makes an account. */
export function MakeUser({ onMade, onClose }: { onMade: () => void; onClose: () => void }) {
  const t = w();
  const [name, setName] = useState("");
  const [display, setDisplay] = useState("");
  const [email, setEmail] = useState("");
  const [password, setPassword] = useState("");
  const [admin, setAdmin] = useState(false);
  const { send, busy, error, fault } = useSend(async () => {
    await got(api.POST("/api/v1/users", { body: { name, display, email, password: password || undefined, admin } }));
    done(t.made(name));
    onMade();
    onClose();
  }, "name", "display", "email", "password");
  return (
    <Dialog title={t.makeUser} onClose={onClose} actions={<><Button onClick={onClose}>{t.back}</Button><Button type="submit" form="make-user" look="primary" aria-busy={busy || undefined}>{t.makeUser}</Button></>}>
      <form id="make-user" class="stack" onSubmit={send} autocomplete="off">
        <TextField label={t.name} hint={door().nameRules} error={fault("name")} value={name} onText={setName} required maxLength={64} autocapitalize="none" spellcheck={false} autofocus />
        <TextField label={t.display} error={fault("display")} value={display} onText={setDisplay} maxLength={200} />
        <TextField label={t.email} error={fault("email")} value={email} onText={setEmail} type="email" maxLength={254} />
        <PasswordField label={t.password} hint={`${door().rules} ${t.passwordHint}`} error={fault("password")} value={password} onText={setPassword} autocomplete="new-password" required={false} />
        <Check label={t.isAdmin} hint={t.isAdminHint} checked={admin} onCheck={setAdmin} />
        {error && <Problem error={error} />}
      </form>
    </Dialog>
  );
}

/** Gives somebody another password. */
export function ResetPassword({ u, onClose }: { u: User; onClose: () => void }) {
  const t = w();
  const [password, setPassword] = useState("");
  const { send, busy, error, fault } = useSend(async () => {
    await got(api.PUT("/api/v1/users/{user}/password", { params: { path: { user: u.id } }, body: { password } }));
    done(t.passwordSet);
    onClose();
  }, "password");
  return (
    <Dialog title={`${t.setPassword}: ${u.name}`} onClose={onClose} actions={<><Button onClick={onClose}>{t.back}</Button><Button type="submit" form="reset-password" look="primary" aria-busy={busy || undefined}>{t.setPassword}</Button></>}>
      <form id="reset-password" class="stack" onSubmit={send} autocomplete="off">
        <p class="muted">{t.setPasswordText}</p>
        <PasswordField label={t.password} hint={door().rules} error={fault("password")} value={password} onText={setPassword} autocomplete="new-password" />
        {error && <Problem error={error} />}
      </form>
    </Dialog>
  );
}

/** The ways in that somebody has: tokens and browsers. */
export function WaysIn({ u, onClose }: { u: User; onClose: () => void }) {
  const t = w();
  const tokens = useTokens(u.id);
  const logins = useAsked((signal) => got(api.GET("/api/v1/users/{user}/sign-ins", { params: { path: { user: u.id } }, signal })), [u.id]);
  const end = async () => {
    await got(api.DELETE("/api/v1/users/{user}/sign-ins", { params: { path: { user: u.id } } }));
    await logins.again();
    done(t.ended);
  };
  return (
    <Dialog wide title={t.tokensOf(u.name)} onClose={onClose} actions={<Button onClick={onClose}>{t.back}</Button>}>
      <Shown asked={tokens}>{({ items }) => (items.length === 0 ? <p class="muted">{t.noTokens}</p> : <TokenTable user={u.id} tokens={items} onEnd={() => void tokens.again()} />)}</Shown>
      <h3>{t.signIns}</h3>
      <Shown asked={logins}>
        {({ items }) => items.length === 0 ? <p class="muted">{t.noSignIns}</p> : (
          <>
            <ul class="settings-list-rows">{items.map((l, i) => <li key={i} title={l.agent}><span class="grow">{browserOf(l.agent)}</span><When time={l.seen} /></li>)}</ul>
            <div><ActionButton act={end}>{t.endSignIns}</ActionButton></div>
          </>
        )}
      </Shown>
    </Dialog>
  );
}
