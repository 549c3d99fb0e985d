import { useState } from "preact/hooks";
import { SavedByOthers } from "../../features/settings/skillswitch";
import { useSend } from "../../features/users/form";
import { api, got, Refusal, useLoad, type Schema } from "../../shared/api/client";
import { msg } from "../../shared/i18n/messages";
import { Button, done, Problem, SelectField, Shown, TextField, useConfirm } from "../../shared/ui";
import { Part } from "../../shared/ui/sections";

const usual = [30, 90, 180, 365, 730];

/** Retention sets how long audit records are kept. */
export function Retention() {
  const load = useLoad((signal) => got(api.GET("/api/v1/settings/audit", { signal })), []);
  return (
    <Part
      title={msg("admin.tabs.audit")}
      lead={msg("admin.auditText")}
      action={
        <a class="button" href="/audit">
          {msg("admin.auditLog")}
        </a>
      }
    >
      <Shown asked={load}>{(r) => <Form key={r.generation} r={r} set={load.set} again={load.again} />}</Shown>
    </Part>
  );
}

function Form({
  r,
  set,
  again,
}: {
  r: Schema["Retention"];
  set: (r: Schema["Retention"]) => void;
  again: () => Promise<void>;
}) {
  const confirm = useConfirm();
  const [choice, choose] = useState(r.days === 0 || usual.includes(r.days) ? String(r.days) : "other");
  const [other, setOther] = useState(String(r.days || 30));
  const days = Number(choice === "other" ? other : choice);
  const put = async () => {
    set(await got(api.PUT("/api/v1/settings/audit", { body: { days, generation: r.generation } })));
    done(msg("admin.retentionSaved"));
  };
  const { send, busy, error } = useSend(put);
  const less = days > 0 && (r.days === 0 || days < r.days);
  const submit = (e: Event) => {
    e.preventDefault();
    if (less)
      confirm.ask({
        title: msg("admin.lessTitle", { count: days }),
        children: msg("admin.lessText"),
        yes: msg("admin.keepLess"),
        danger: true,
        act: () => send(),
      });
    else void send();
  };
  const lost = error instanceof Refusal && error.problem.code === "changed";
  return (
    <form class="stack settings-form" onSubmit={submit}>
      {confirm.open}
      <SelectField
        label={msg("admin.keepFor")}
        value={choice}
        onText={choose}
        options={[
          ["0", msg("admin.forEver")],
          ...usual.map((n): [string, string] => [String(n), msg("admin.days", { count: n })]),
          ["other", msg("admin.custom")],
        ]}
      />
      {choice === "other" && (
        <TextField
          label={msg("admin.otherDays")}
          value={other}
          onText={setOther}
          type="number"
          min={1}
          max={36500}
          required
        />
      )}
      {lost ? <SavedByOthers again={again} /> : !!error && <Problem error={error} />}
      <Button type="submit" look="primary" disabled={days === r.days} aria-busy={busy || undefined}>
        {msg("admin.save")}
      </Button>
    </form>
  );
}
