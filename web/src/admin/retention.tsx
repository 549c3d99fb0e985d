import { useState } from "preact/hooks";
import { useSend } from "../account/send";
import { api, got, Refusal, useAsked, type Schema } from "../api/client";
import { Button, done, Problem, SelectField, Shown, TextField, useConfirm } from "../ui";
import { Part } from "../settings/sections";
import { Lost } from "./switch";
import { w } from "./words";

const usual = [30, 90, 180, 365, 730];

/** How long the audit log is kept. */
export function Retention() {
  const t = w();
  const asked = useAsked((signal) => got(api.GET("/api/v1/settings/audit", { signal })), []);
  return (
    <Part title={t.tabs.audit} lead={t.auditText} action={<a class="button" href="/audit">{t.auditLog}</a>}>
      <Shown asked={asked}>{(r) => <Form key={r.generation} r={r} set={asked.set} again={asked.again} />}</Shown>
    </Part>
  );
}

function Form({ r, set, again }: { r: Schema["Retention"]; set: (r: Schema["Retention"]) => void; again: () => Promise<void> }) {
  const t = w();
  const confirm = useConfirm();
  const [choice, choose] = useState(r.days === 0 || usual.includes(r.days) ? String(r.days) : "other");
  const [other, setOther] = useState(String(r.days || 30));
  const days = Number(choice === "other" ? other : choice);
  const put = async () => {
    set(await got(api.PUT("/api/v1/settings/audit", { body: { days, generation: r.generation } })));
    done(t.retentionSaved);
  };
  const { send, busy, error } = useSend(put);
  const less = days > 0 && (r.days === 0 || days < r.days);
  const submit = (e: Event) => {
    e.preventDefault();
    if (less) confirm.ask({ title: t.lessTitle(days), children: t.lessText, yes: t.keepLess, danger: true, act: () => send() });
    else void send();
  };
  const lost = error instanceof Refusal && error.problem.code === "changed";
  return (
    <form class="stack settings-form" onSubmit={submit}>
      {confirm.open}
      <SelectField label={t.keepFor} value={choice} onText={choose} options={[["0", t.forEver], ...usual.map((n): [string, string] => [String(n), t.days(n)]), ["other", t.custom]]} />
      {choice === "other" && <TextField label={t.otherDays} value={other} onText={setOther} type="number" min={1} max={36500} required />}
      {lost ? <Lost again={again} /> : !!error && <Problem error={error} />}
      <Button type="submit" look="primary" disabled={days === r.days} aria-busy={busy || undefined}>{t.save}</Button>
    </form>
  );
}
