import { useState } from "preact/hooks";
import { useSend } from "../../features/users/form";
import { api, got, useLoad, type Schema } from "../../shared/api/client";
import { findMsg, msg } from "../../shared/i18n/messages";
import { Button, Dialog, done, Problem, SelectField, Shown, Tag, TextField } from "../../shared/ui";

type Kind = "server" | "Model" | "Skill";

/** A resource that can get a secret. */
interface Candidate {
  text: string;
  to: Schema["SecretFor"];
  /** The known destinations of the value. */
  uses?: Schema["ServerUse"][];
}

/** A secret with this prefix is a platform value, which is granted for a target. */
const variablePrefix = "variable.";

/** asks reports whether a server uses the secret with the given name. */
function asks(use: Schema["ServerUse"], name: string) {
  return (use.kind === "platform" ? variablePrefix + use.name : use.name) === name;
}

/** GrantSecret grants a secret to a resource. It sends the digest that is on the screen. */
export function GrantSecret({
  owner,
  name,
  onGranted,
  onClose,
}: {
  owner: string;
  name: string;
  onGranted: () => void;
  onClose: () => void;
}) {
  const [kind, setKind] = useState<Kind>("server");
  const [at, setAt] = useState("");
  const [target, setTarget] = useState("");
  const isVariable = name.startsWith(variablePrefix);
  const asked = useLoad((stop) => candidates[kind](stop), [kind]);
  const one = at === "" ? undefined : asked.data?.[Number(at)];
  const { send, busy, error } = useSend(async () => {
    if (!one) return;
    await got(
      api.POST("/api/v1/secrets/{secret}/grants", {
        params: { path: { secret: name }, query: { owner } },
        body: isVariable ? { ...one.to, target } : one.to,
      }),
    );
    done(msg("settings.givenOut"));
    onGranted();
    onClose();
  });
  return (
    <Dialog
      title={msg("settings.grantTitle", { n: name })}
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>{msg("settings.back")}</Button>
          <Button type="submit" form="grant-secret" look="primary" disabled={!one} aria-busy={busy || undefined}>
            {msg("settings.grant")}
          </Button>
        </>
      }
    >
      <form id="grant-secret" class="stack" onSubmit={send}>
        <p class="muted">{msg("settings.grantText")}</p>
        <SelectField
          label={msg("settings.kind")}
          value={kind}
          onText={(k) => {
            setKind(k as Kind);
            setAt("");
          }}
          options={(["server", "Model", "Skill"] as const).map((k) => [k, findMsg("settings.kinds", k)!])}
        />
        <Shown asked={asked}>
          {(all) =>
            all.length === 0 ? (
              <p class="muted">{msg("settings.nothing")}</p>
            ) : (
              <SelectField
                label={msg("settings.thing")}
                value={at}
                onText={setAt}
                options={[
                  ["", msg("settings.choose")],
                  ...all.map((c, i): [string, string] => [
                    String(i),
                    c.uses?.some((u) => asks(u, name)) ? `${c.text} — ${msg("settings.wants")}` : c.text,
                  ]),
                ]}
              />
            )
          }
        </Shown>
        {one && <Facts one={one} name={name} />}
        {isVariable && (
          <TextField
            label={msg("settings.target")}
            hint={msg("settings.targetHint")}
            value={target}
            onText={setTarget}
            required
            maxLength={1000}
            autocapitalize="none"
            spellcheck={false}
          />
        )}
        {error && <Problem error={error} />}
      </form>
    </Dialog>
  );
}

function Facts({ one, name }: { one: Candidate; name: string }) {
  const uses = one.uses?.filter((u) => asks(u, name)) ?? [];
  return (
    <dl class="facts">
      <dt>{msg("settings.digest")}</dt>
      <dd class="mono">{one.to.digest}</dd>
      {uses.length > 0 && (
        <>
          <dt>{msg("settings.goesTo")}</dt>
          <dd>
            {uses.map((u, i) => (
              <div key={i}>
                <code>{u.target}</code> <span class="muted">({u.where})</span>
              </div>
            ))}
          </dd>
        </>
      )}
      {one.uses && uses.length === 0 && (
        <>
          <dt>{msg("settings.goesTo")}</dt>
          <dd>
            <Tag look="warn">!</Tag> {msg("settings.doesNotAsk")}
          </dd>
        </>
      )}
    </dl>
  );
}

/** The resources of each kind, with their current digests. */
const candidates: Record<Kind, (signal: AbortSignal) => Promise<Candidate[]>> = {
  server: async (signal) => {
    const { items } = await got(api.GET("/api/v1/servers", { params: { query: { limit: 500 } }, signal }));
    return items.flatMap((s): Candidate[] => {
      if (!s.kind || !s.thing) return []; // operator servers have their own values
      const kind = s.kind as Schema["SecretFor"]["kind"];
      const server = kind === "MCPServer" ? undefined : s.name;
      return [
        {
          text: [s.thing, server].filter(Boolean).join(" / "),
          to: { kind, namespace: s.namespace, name: s.thing, server, digest: s.digest },
          uses: s.uses ?? [],
        },
      ];
    });
  },
  Model: async (signal) => {
    const { items } = await got(
      api.GET("/api/v1/kinds/{kind}", { params: { path: { kind: "Model" }, query: { limit: 100 } }, signal }),
    );
    const whole = await Promise.all(
      items.map((k) =>
        got(
          api.GET("/api/v1/kinds/{kind}/{namespace}/{name}", {
            params: { path: { kind: "Model", namespace: k.metadata.namespace, name: k.metadata.name } },
            signal,
          }),
        ),
      ),
    );
    return whole.flatMap((k): Candidate[] =>
      k.status.digest
        ? [
            {
              text: k.metadata.name,
              to: { kind: "Model", namespace: k.metadata.namespace, name: k.metadata.name, digest: k.status.digest },
            },
          ]
        : [],
    );
  },
  Skill: async (signal) => {
    const { items } = await got(api.GET("/api/v1/skills", { params: { query: { limit: 500 } }, signal }));
    return items.map((s): Candidate => ({ text: s.name, to: { kind: "Skill", name: s.name, digest: s.digest } }));
  },
};
