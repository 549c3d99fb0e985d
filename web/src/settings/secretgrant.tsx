import { useState } from "preact/hooks";
import { useSend } from "../account/send";
import { api, got, useAsked, type Schema } from "../api/client";
import { Button, Dialog, done, Problem, SelectField, Shown, Tag } from "../ui";
import { w } from "./words";

type Kind = "server" | "Model" | "Skill";

/** Something that could have a secret. */
interface Candidate {
  text: string;
  to: Schema["SecretFor"];
  /** Where the value would go, as far as that is known. */
  uses?: Schema["ServerUse"][];
  target?: string;
}

/** Lets something have a secret, as it is now: the digest that is shown is the one that is sent. */
export function GrantSecret({ owner, name, onGranted, onClose }: { owner: string; name: string; onGranted: () => void; onClose: () => void }) {
  const t = w();
  const [kind, setKind] = useState<Kind>("server");
  const [at, setAt] = useState("");
  const asked = useAsked((stop) => candidates[kind](stop), [kind]);
  const one = at === "" ? undefined : asked.data?.[Number(at)];
  const { send, busy, error } = useSend(async () => {
    if (!one) return;
    await got(api.POST("/api/v1/secrets/{secret}/grants", { params: { path: { secret: name }, query: { owner } }, body: one.to }));
    done(t.givenOut);
    onGranted();
    onClose();
  });
  const asks = (c: Candidate) => c.uses?.some((u) => u.name === name) ?? false;
  return (
    <Dialog title={t.grantTitle(name)} onClose={onClose} actions={<><Button onClick={onClose}>{t.back}</Button><Button type="submit" form="grant-secret" look="primary" disabled={!one} aria-busy={busy || undefined}>{t.grant}</Button></>}>
      <form id="grant-secret" class="stack" onSubmit={send}>
        <p class="muted">{t.grantText}</p>
        <SelectField label={t.kind} value={kind} onText={(k) => { setKind(k as Kind); setAt(""); }} options={(["server", "Model", "Skill"] as const).map((k) => [k, t.kinds[k]!])} />
        <Shown asked={asked}>
          {(all) => all.length === 0 ? <p class="muted">{t.nothing}</p> : <SelectField label={t.thing} value={at} onText={setAt} options={[["", t.choose], ...all.map((c, i): [string, string] => [String(i), asks(c) ? `${c.text} — ${t.wants}` : c.text])]} />}
        </Shown>
        {one && <Facts one={one} name={name} />}
        {error && <Problem error={error} />}
      </form>
    </Dialog>
  );
}

function Facts({ one, name }: { one: Candidate; name: string }) {
  const t = w();
  const uses = one.uses?.filter((u) => u.name === name) ?? [];
  return (
    <dl class="facts">
      <dt>{t.digest}</dt><dd class="mono">{one.to.digest}</dd>
      {uses.length > 0 && <><dt>{t.goesTo}</dt><dd>{uses.map((u, i) => <div key={i}><code>{u.target}</code> <span class="muted">({u.where})</span></div>)}</dd></>}
      {one.uses && uses.length === 0 && <><dt>{t.goesTo}</dt><dd><Tag look="warn">!</Tag> {t.doesNotAsk}</dd></>}
    </dl>
  );
}

/** What there is of each kind, with the digest that it has now. */
const candidates: Record<Kind, (signal: AbortSignal) => Promise<Candidate[]>> = {
  server: async (signal) => {
    const { items } = await got(api.GET("/api/v1/servers", { params: { query: { limit: 500 } }, signal }));
    return items.flatMap((s): Candidate[] => {
      if (!s.kind || !s.thing) return []; // the operator's own have values of their own
      const kind = s.kind as Schema["SecretFor"]["kind"];
      const server = kind === "MCPServer" ? undefined : s.name;
      return [{ text: [s.thing, server].filter(Boolean).join(" / "), to: { kind, namespace: s.namespace, name: s.thing, server, digest: s.digest }, uses: s.uses ?? [] }];
    });
  },
  Model: async (signal) => {
    const { items } = await got(api.GET("/api/v1/kinds/{kind}", { params: { path: { kind: "Model" }, query: { limit: 100 } }, signal }));
    const whole = await Promise.all(items.map((k) => got(api.GET("/api/v1/kinds/{kind}/{namespace}/{name}", { params: { path: { kind: "Model", namespace: k.metadata.namespace, name: k.metadata.name } }, signal }))));
    return whole.flatMap((k): Candidate[] => (k.status.digest ? [{ text: k.metadata.name, to: { kind: "Model", namespace: k.metadata.namespace, name: k.metadata.name, digest: k.status.digest } }] : []));
  },
  Skill: async (signal) => {
    const { items } = await got(api.GET("/api/v1/skills", { params: { query: { limit: 500 } }, signal }));
    return items.map((s): Candidate => ({ text: s.name, to: { kind: "Skill", name: s.name, digest: s.digest } }));
  },
};
