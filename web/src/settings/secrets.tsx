import { useState } from "preact/hooks";
import { groupName, personName, usePeople } from "../account/people";
import { useSend } from "../account/send";
import { api, got, useAsked, type Schema } from "../api/client";
import { isAdmin, me } from "../api/me";
import { ActionButton, AreaField, Button, Dialog, done, Empty, Problem, SelectField, Shown, TextField, useConfirm, When } from "../ui";
import { GrantSecret } from "./secretgrant";
import { Part } from "./sections";
import { w } from "./words";

/** Values that nobody can read again: their names, and who has them. */
export function Secrets() {
  usePeople();
  const t = w();
  const [owner, setOwner] = useState("default");
  const [setting, set] = useState<string>();
  const asked = useAsked((signal) => got(api.GET("/api/v1/secrets", { params: { query: { owner } }, signal })), [owner]);
  const owners: [string, string][] = [["default", t.mine], ...me.value!.groups.filter((g) => g.role === "owner" || g.role === "maintainer").map((g): [string, string] => [`group:${g.group}`, groupName(g.group)])];
  if (isAdmin.value) owners.push(["public", t.everybody]);
  return (
    <Part title={t.tabs.secrets} lead={t.secrets} action={<Button look="primary" icon="plus" onClick={() => set("")}>{t.addSecret}</Button>}>
      {owners.length > 1 && <div class="settings-form"><SelectField label={t.owner} value={owner} onText={setOwner} options={owners} /></div>}
      {setting !== undefined && <SetSecret owner={owner} name={setting} onKept={() => void asked.again()} onClose={() => set(undefined)} />}
      <Shown asked={asked}>
        {({ items }) => items.length === 0
          ? <Empty title={t.noSecrets}>{t.noSecretsText}</Empty>
          : <ul class="settings-list-rows">{items.map((s) => <Secret key={owner + s.name} owner={owner} secret={s} onReplace={() => set(s.name)} onGone={() => void asked.again()} />)}</ul>}
      </Shown>
    </Part>
  );
}

function Secret({ owner, secret, onReplace, onGone }: { owner: string; secret: Schema["Secret"]; onReplace: () => void; onGone: () => void }) {
  const t = w();
  const confirm = useConfirm();
  const [granting, grant] = useState(false);
  const params = { path: { secret: secret.name }, query: { owner } };
  const grants = useAsked((signal) => got(api.GET("/api/v1/secrets/{secret}/grants", { params, signal })), [owner, secret.name]);
  const forget = () =>
    confirm.ask({
      title: t.forgetTitle(secret.name), children: t.forgetText, yes: t.forget, danger: true,
      act: async () => {
        await got(api.DELETE("/api/v1/secrets/{secret}", { params }));
        done(t.forgotten);
        onGone();
      },
    });
  return (
    <li>
      {confirm.open}
      {granting && <GrantSecret owner={owner} name={secret.name} onGranted={() => void grants.again()} onClose={() => grant(false)} />}
      <div class="grow"><strong class="mono">{secret.name}</strong><br /><span class="small muted">{t.updated} <When time={secret.updated} /> {t.by} {personName(secret.updatedBy)}</span></div>
      <div class="row">
        <Button small onClick={() => grant(true)}>{t.grant}</Button>
        <Button small onClick={onReplace}>{t.replace}</Button>
        <Button small look="danger" icon="trash" label={`${t.forget}: ${secret.name}`} onClick={forget} />
      </div>
      <Shown asked={grants}>{({ items }) => <GrantedTo owner={owner} grants={items} onTaken={() => void grants.again()} />}</Shown>
    </li>
  );
}

/** What has a secret, each by its digest. */
function GrantedTo({ owner, grants, onTaken }: { owner: string; grants: Schema["SecretGrant"][]; onTaken: () => void }) {
  const t = w();
  if (grants.length === 0) return <p class="settings-granted muted">{t.notGranted}</p>;
  const take = async (g: Schema["SecretGrant"]) => {
    await got(api.DELETE("/api/v1/secrets/{secret}/grants", { params: { path: { secret: g.secret }, query: { owner, digest: g.digest } } }));
    done(t.takenBack);
    onTaken();
  };
  return (
    <div class="settings-granted">
      <span class="muted">{t.grantedTo}</span>
      <ul class="stack tight">
        {grants.map((g) => (
          <li key={g.digest}>
            <span class="grow"><strong>{g.subject}</strong> <code title={g.digest}>{g.digest.replace("sha256:", "").slice(0, 12)}</code> <span class="muted small">{t.by} {personName(g.by)}, <When time={g.created} /></span></span>
            <ActionButton small act={() => take(g)} label={`${t.takeBack}: ${g.subject}`}>{t.takeBack}</ActionButton>
          </li>
        ))}
      </ul>
    </div>
  );
}

/** Keeps a value under a new name, or in place of one. */
function SetSecret({ owner, name: had, onKept, onClose }: { owner: string; name: string; onKept: () => void; onClose: () => void }) {
  const t = w();
  const [name, setName] = useState(had);
  const [value, setValue] = useState("");
  const { send, busy, error } = useSend(async () => {
    await got(api.PUT("/api/v1/secrets/{secret}", { params: { path: { secret: name }, query: { owner } }, body: { value } }));
    done(t.kept);
    onKept();
    onClose();
  });
  return (
    <Dialog title={had ? `${t.replace}: ${had}` : t.addSecret} onClose={onClose} actions={<><Button onClick={onClose}>{t.back}</Button><Button type="submit" form="set-secret" look="primary" aria-busy={busy || undefined}>{t.keep}</Button></>}>
      <form id="set-secret" class="stack" onSubmit={send} autocomplete="off">
        {!had && <TextField label={t.secretName} hint={t.secretNameHint} value={name} onText={setName} required maxLength={256} autocapitalize="none" spellcheck={false} autofocus />}
        <AreaField label={t.value} hint={t.valueHint} value={value} onText={setValue} rows={3} required maxLength={65536} class="mono" />
        {error && <Problem error={error} />}
      </form>
    </Dialog>
  );
}
