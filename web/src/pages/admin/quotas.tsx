import { useState } from "preact/hooks";
import { SavedByOthers } from "../../features/settings/skillswitch";
import { useSend } from "../../features/users/form";
import { groupName, namespaceName, useUserNames } from "../../features/users/users";
import { api, got, Refusal, useLoad, type Schema } from "../../shared/api/client";
import { msg } from "../../shared/i18n/messages";
import { Button, done, Problem, SelectField, Shown, TextField } from "../../shared/ui";
import { Part } from "../../shared/ui/sections";

type Limits = Schema["Amounts"];
type Settings = Schema["Quotas"];

const megabyte = 1_000_000;

/** Quotas edits the limits of what users and groups store. */
export function Quotas() {
  const load = useLoad((signal) => got(api.GET("/api/v1/settings/quotas", { signal })), []);
  return (
    <Part title={msg("admin.tabs.quotas")} lead={msg("admin.quotasText")}>
      <Shown asked={load}>{(s) => <Form key={s.generation} settings={s} set={load.set} again={load.again} />}</Shown>
    </Part>
  );
}

interface FormProps {
  settings: Settings;
  set: (s: Settings) => void;
  again: () => Promise<void>;
}

function Form({ settings, set, again }: FormProps) {
  const [next, change] = useState(settings);
  const overrides = next.overrides ?? [];
  const put = async () => {
    set(await got(api.PUT("/api/v1/settings/quotas", { body: next })));
    done(msg("admin.saved"));
  };
  const { send, busy, error } = useSend(put);
  const lost = error instanceof Refusal && error.problem.code === "changed";
  const free = useNamespaces().filter(([n]) => !overrides.some((o) => o.namespace === n));
  return (
    <form class="stack" onSubmit={send}>
      <h3>{msg("admin.quotasUser")}</h3>
      <LimitFields limits={next.user} sessions onChange={(user) => change({ ...next, user })} />
      <h3>{msg("admin.quotasGroup")}</h3>
      <LimitFields limits={next.group} onChange={(group) => change({ ...next, group })} />
      {overrides.length > 0 && <h3>{msg("admin.quotasOther")}</h3>}
      {overrides.map((o, i) => (
        <Exception
          key={i}
          override={o}
          free={free}
          onChange={(to) => change({ ...next, overrides: overrides.map((was, at) => (at === i ? to : was)) })}
          onRemove={() => change({ ...next, overrides: overrides.filter((_, at) => at !== i) })}
        />
      ))}
      {lost ? <SavedByOthers again={again} /> : !!error && <Problem error={error} />}
      <div class="row">
        <Button
          icon="plus"
          disabled={free.length === 0}
          onClick={() =>
            change({ ...next, overrides: [...overrides, { namespace: free[0]![0], limits: { ...next.user } }] })
          }
        >
          {msg("admin.quotasAdd")}
        </Button>
        <Button
          type="submit"
          look="primary"
          disabled={JSON.stringify(next) === JSON.stringify(settings)}
          aria-busy={busy || undefined}
        >
          {msg("admin.quotasSave")}
        </Button>
      </div>
    </form>
  );
}

/** useNamespaces returns what an exception may be for: groups, users, and the public namespace. */
function useNamespaces(): [namespace: string, name: string][] {
  const { users, groups } = useUserNames();
  return [
    ...[...groups.keys()].map((id): [string, string] => [`group:${id}`, groupName(id)]),
    ...[...users.values()].map((u): [string, string] => [`user:${u.id}`, u.name]),
    ["public", namespaceName("public")],
  ];
}

interface ExceptionProps {
  override: Schema["QuotaOverride"];
  free: [string, string][];
  onChange: (o: Schema["QuotaOverride"]) => void;
  onRemove: () => void;
}

function Exception({ override: o, free, onChange, onRemove }: ExceptionProps) {
  const name = namespaceName(o.namespace);
  return (
    <div class="admin-rule" role="group" aria-label={name}>
      <SelectField
        label={msg("admin.quotasOf")}
        value={o.namespace}
        onText={(namespace) => onChange({ ...o, namespace })}
        options={[[o.namespace, name], ...free]}
      />
      <LimitFields
        limits={o.limits}
        sessions={o.namespace.startsWith("user:")}
        onChange={(limits) => onChange({ ...o, limits })}
      />
      <Button look="quiet" icon="trash" label={msg("admin.quotasRemove", { n: name })} onClick={onRemove} />
    </div>
  );
}

interface LimitFieldsProps {
  limits: Limits;
  /** Whether the namespace has conversations. */
  sessions?: boolean;
  onChange: (l: Limits) => void;
}

function LimitFields({ limits, sessions, onChange }: LimitFieldsProps) {
  return (
    <div class="admin-limits">
      <LimitField
        label={msg("admin.quotasBytes")}
        value={limits.bytes}
        unit={megabyte}
        onValue={(bytes) => onChange({ ...limits, bytes })}
      />
      <LimitField
        label={msg("admin.quotasSkills")}
        value={limits.skills}
        onValue={(skills) => onChange({ ...limits, skills })}
      />
      {sessions && (
        <LimitField
          label={msg("admin.quotasSessions")}
          value={limits.sessions}
          onValue={(sessions) => onChange({ ...limits, sessions })}
        />
      )}
    </div>
  );
}

interface LimitFieldProps {
  label: string;
  value: number;
  /** The value that 1 in the field stands for. */
  unit?: number;
  onValue: (value: number) => void;
}

/** LimitField edits a limit. An empty field is invalid and does not change it, because 0 means no limit. */
function LimitField({ label, value, unit = 1, onValue }: LimitFieldProps) {
  const [typed, type] = useState({ text: String(value / unit), value });
  return (
    <TextField
      label={label}
      type="number"
      min={0}
      max={1_000_000_000}
      step="any"
      required
      value={typed.value === value ? typed.text : String(value / unit)}
      onText={(text) => {
        const to = text.trim() && Number(text) >= 0 ? Math.round(Number(text) * unit) : value;
        type({ text, value: to });
        if (to !== value) onValue(to);
      }}
    />
  );
}
