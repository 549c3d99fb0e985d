import { useEffect, useState } from "preact/hooks";
import { useLocation } from "preact-iso";
import { useSend } from "../../features/users/form";
import { groupName, groupsByID, userName, useUserNames } from "../../features/users/users";
import { api, got, useLoad, type Schema } from "../../shared/api/client";
import { isAdmin, me } from "../../shared/api/me";
import { ago, formatTime } from "../../shared/i18n/format";
import { msg } from "../../shared/i18n/messages";
import {
  ActionButton,
  AreaField,
  Button,
  Check,
  Dialog,
  done,
  Empty,
  failed,
  Problem,
  SelectField,
  Shown,
  TextField,
  useConfirm,
} from "../../shared/ui";
import { Part } from "../../shared/ui/sections";
import { GrantSecret } from "./grantsecret";

/** Secrets lists the secrets and their grants. */
export function Secrets() {
  useUserNames();

  const { query, path, route } = useLocation();
  const [owner, setOwner] = useState("default");
  const [setting, set] = useState<string>();
  const [asked, setAsked] = useState("");
  const load = useLoad((signal) => got(api.GET("/api/v1/secrets", { params: { query: { owner } }, signal })), [owner]);
  const owners: [string, string][] = [
    ["default", msg("settings.mine")],
    ...me
      .value!.groups.filter((g) => g.role === "owner" || g.role === "maintainer")
      .map((g): [string, string] => [`group:${g.group}`, groupName(g.group)]),
  ];
  if (isAdmin.value) owners.push(["public", msg("settings.everybody")]);
  useEffect(() => {
    if (!query.name) return; // a link from a resource that needs a secret contains its name
    const name = query.name.slice(0, 256);
    void ownerOf(query.owner).then((o) => {
      setOwner(owners.some(([id]) => id === o) ? o : "default");
      setAsked(name);
      set("");
      route(path, true);
    }, failed);
  }, [query.name, query.owner]);
  const close = () => {
    set(undefined);
    setAsked("");
  };
  return (
    <Part
      title={msg("settings.tabs.secrets")}
      lead={msg("settings.secrets")}
      action={
        <Button look="primary" icon="plus" onClick={() => set("")}>
          {msg("settings.addSecret")}
        </Button>
      }
    >
      {owners.length > 1 && (
        <div class="settings-form">
          <SelectField label={msg("settings.owner")} value={owner} onText={setOwner} options={owners} />
        </div>
      )}
      {setting !== undefined && (
        <SetSecret owner={owner} name={setting} asked={asked} onKept={() => void load.again()} onClose={close} />
      )}
      <Shown asked={load}>
        {({ items }) =>
          items.length === 0 ? (
            <Empty title={msg("settings.noSecrets")}>{msg("settings.noSecretsText")}</Empty>
          ) : (
            <ul class="settings-list-rows">
              {items.map((s) => (
                <Secret
                  key={owner + s.name}
                  owner={owner}
                  secret={s}
                  onReplace={() => set(s.name)}
                  onGone={() => void load.again()}
                />
              ))}
            </ul>
          )
        }
      </Shown>
    </Part>
  );
}

/** ownerOf returns the owner for a namespace, which may be given by the name of a group. */
async function ownerOf(namespace = "default"): Promise<string> {
  const group = [...(await groupsByID()).values()].find((g) => g.name === namespace);
  return group ? `group:${group.id}` : namespace;
}

function Secret({
  owner,
  secret,
  onReplace,
  onGone,
}: {
  owner: string;
  secret: Schema["Secret"];
  onReplace: () => void;
  onGone: () => void;
}) {
  const confirm = useConfirm();
  const [granting, grant] = useState(false);
  const params = { path: { secret: secret.name }, query: { owner } };
  const grants = useLoad(
    (signal) => got(api.GET("/api/v1/secrets/{secret}/grants", { params, signal })),
    [owner, secret.name],
  );
  const forget = () =>
    confirm.ask({
      title: msg("settings.forgetTitle", { n: secret.name }),
      children: msg("settings.forgetText"),
      yes: msg("settings.forget"),
      danger: true,
      act: async () => {
        await got(api.DELETE("/api/v1/secrets/{secret}", { params }));
        done(msg("settings.forgotten"));
        onGone();
      },
    });
  return (
    <li>
      {confirm.open}
      {granting && (
        <GrantSecret
          owner={owner}
          name={secret.name}
          onGranted={() => void grants.again()}
          onClose={() => grant(false)}
        />
      )}
      <div class="grow">
        <strong class="mono">{secret.name}</strong>
        <br />
        <span class="small muted">
          <time dateTime={secret.updated} title={formatTime(secret.updated)}>
            {msg("settings.changedBy", { ago: ago(secret.updated), name: userName(secret.updatedBy) })}
          </time>
        </span>
      </div>
      <div class="row">
        <Button small onClick={() => grant(true)}>
          {msg("settings.grant")}
        </Button>
        <Button small onClick={onReplace}>
          {msg("settings.replace")}
        </Button>
        <Button small look="danger" icon="trash" label={`${msg("settings.forget")}: ${secret.name}`} onClick={forget} />
      </div>
      <Shown asked={grants}>
        {({ items }) => <GrantedTo owner={owner} grants={items} onTaken={() => void grants.again()} />}
      </Shown>
    </li>
  );
}

/** GrantedTo lists the grants of a secret. */
function GrantedTo({
  owner,
  grants,
  onTaken,
}: {
  owner: string;
  grants: Schema["SecretGrant"][];
  onTaken: () => void;
}) {
  if (grants.length === 0) return <p class="settings-granted muted">{msg("settings.notGranted")}</p>;
  const take = async (g: Schema["SecretGrant"]) => {
    await got(
      api.DELETE("/api/v1/secrets/{secret}/grants", {
        params: { path: { secret: g.secret }, query: { owner, digest: g.digest, target: g.target } },
      }),
    );
    done(msg("settings.takenBack"));
    onTaken();
  };
  return (
    <div class="settings-granted">
      <span class="muted">{msg("settings.grantedTo")}</span>
      <ul class="stack tight">
        {grants.map((g) => (
          <li key={`${g.digest} ${g.target ?? ""}`}>
            <span class="grow">
              <strong>{g.subject}</strong> <code title={g.digest}>{g.digest.replace("sha256:", "").slice(0, 12)}</code>{" "}
              {g.target && (
                <>
                  <span class="muted">{msg("settings.goesTo")}</span> <code>{g.target}</code>{" "}
                </>
              )}
              <span class="muted small">
                <time dateTime={g.created} title={formatTime(g.created)}>
                  {msg("settings.grantedBy", { ago: ago(g.created), name: userName(g.by) })}
                </time>
              </span>
            </span>
            <ActionButton small act={() => take(g)} label={`${msg("settings.takeBack")}: ${g.subject}`}>
              {msg("settings.takeBack")}
            </ActionButton>
          </li>
        ))}
      </ul>
    </div>
  );
}

/** SetSecret stores a new or replaced value. */
function SetSecret({
  owner,
  name: had,
  asked,
  onKept,
  onClose,
}: {
  owner: string;
  name: string;
  /** The name of the missing secret in the link that the user followed. */
  asked: string;
  onKept: () => void;
  onClose: () => void;
}) {
  const [name, setName] = useState(had || asked);
  const [value, setValue] = useState("");
  const [visible, setVisible] = useState(false);
  const { send, busy, error, fault } = useSend(async () => {
    await got(
      api.PUT("/api/v1/secrets/{secret}", { params: { path: { secret: name }, query: { owner } }, body: { value } }),
    );
    done(msg("settings.kept"));
    onKept();
    onClose();
  }, "secret");
  return (
    <Dialog
      title={had ? `${msg("settings.replace")}: ${had}` : msg("settings.addSecret")}
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>{msg("settings.back")}</Button>
          <Button type="submit" form="set-secret" look="primary" aria-busy={busy || undefined}>
            {msg("settings.keep")}
          </Button>
        </>
      }
    >
      <form id="set-secret" class="stack" onSubmit={send} autocomplete="off">
        {!had && (
          <TextField
            label={msg("settings.secretName")}
            hint={msg("settings.secretNameHint")}
            error={fault("secret")}
            value={name}
            onText={setName}
            required
            maxLength={256}
            autocapitalize="none"
            spellcheck={false}
            autofocus
          />
        )}
        <AreaField
          label={msg("settings.value")}
          hint={msg("settings.valueHint")}
          value={value}
          onText={setValue}
          rows={3}
          required
          maxLength={65536}
          class={visible ? "mono" : "mono settings-masked"}
        />
        <Check label={msg("settings.showValue")} checked={visible} onCheck={setVisible} />
        {error && <Problem error={error} />}
      </form>
    </Dialog>
  );
}
