import { useState } from "preact/hooks";
import { SavedByOthers } from "../../features/settings/skillswitch";
import { useSend } from "../../features/users/form";
import { groupName, roleName, useUserNames } from "../../features/users/users";
import { api, got, Refusal, useLoad, type Schema } from "../../shared/api/client";
import { ways } from "../../shared/api/me";
import { msg } from "../../shared/i18n/messages";
import { Button, Check, done, Empty, Problem, SelectField, Shown, TextField } from "../../shared/ui";
import { Part } from "../../shared/ui/sections";

type Rule = Schema["Rule"];

const roles: NonNullable<Rule["role"]>[] = ["reporter", "developer", "maintainer", "owner"];

/** Rules edits the rules that map provider groups to hub groups. */
export function Rules() {
  const load = useLoad((signal) => got(api.GET("/api/v1/settings/sign-in", { signal })), []);
  return (
    <Part title={msg("admin.tabs.sign-in")} lead={msg("admin.rulesText")}>
      {!ways.value?.provider && <div class="note warn">{msg("admin.noProvider")}</div>}
      <Shown asked={load}>
        {(rules) => <Form key={rules.generation} rules={rules} set={load.set} again={load.again} />}
      </Shown>
    </Part>
  );
}

function Form({
  rules,
  set,
  again,
}: {
  rules: Schema["Rules"];
  set: (r: Schema["Rules"]) => void;
  again: () => Promise<void>;
}) {
  const [list, setList] = useState(rules.rules);
  const { send, busy, error } = useSend(async () => {
    set(await got(api.PUT("/api/v1/settings/sign-in", { body: { rules: list, generation: rules.generation } })));
    done(msg("admin.saved"));
  });
  const change = (at: number, rule: Rule) => setList(list.map((r, i) => (i === at ? rule : r)));
  const changed = JSON.stringify(list) !== JSON.stringify(rules.rules);
  const lost = error instanceof Refusal && error.problem.code === "changed";
  return (
    <form class="stack" onSubmit={send}>
      {list.length === 0 && <Empty title={msg("admin.noRules")}>{msg("admin.noRulesText")}</Empty>}
      <div class="admin-rules">
        {list.map((r, i) => (
          <RuleRow
            key={i}
            rule={r}
            onChange={(to) => change(i, to)}
            onRemove={() => setList(list.filter((_, at) => at !== i))}
          />
        ))}
      </div>
      {lost ? <SavedByOthers again={again} /> : !!error && <Problem error={error} />}
      <div class="row">
        <Button icon="plus" onClick={() => setList([...list, { claimed: "", role: "reporter" }])}>
          {msg("admin.addRule")}
        </Button>
        <Button type="submit" look="primary" disabled={!changed} aria-busy={busy || undefined}>
          {msg("admin.saveRules")}
        </Button>
      </div>
    </form>
  );
}

function RuleRow({ rule, onChange, onRemove }: { rule: Rule; onChange: (r: Rule) => void; onRemove: () => void }) {
  const { groups } = useUserNames();
  const places: [string, string][] = [
    ["", msg("admin.noGroup")],
    ...[...groups.keys()].map((id): [string, string] => [id, groupName(id)]),
  ];
  if (rule.group && !groups.has(rule.group)) places.push([rule.group, rule.group]);
  return (
    <div class="admin-rule" role="group" aria-label={rule.claimed || msg("admin.addRule")}>
      <TextField
        label={msg("admin.claimed")}
        value={rule.claimed}
        onText={(claimed) => onChange({ ...rule, claimed })}
        required
        maxLength={255}
        autocapitalize="none"
        spellcheck={false}
      />
      <SelectField
        label={msg("admin.group")}
        value={rule.group ?? ""}
        onText={(group) =>
          onChange({ ...rule, group: group || undefined, role: group ? (rule.role ?? "reporter") : undefined })
        }
        options={places}
      />
      <SelectField
        label={msg("admin.role")}
        value={rule.group ? (rule.role ?? "reporter") : ""}
        disabled={!rule.group}
        onText={(role) => onChange({ ...rule, role: role as Rule["role"] })}
        options={rule.group ? roles.map((r): [string, string] => [r, roleName(r)]) : [["", "–"]]}
      />
      <Check
        label={msg("admin.gives")}
        checked={rule.admin ?? false}
        onCheck={(admin) => onChange({ ...rule, admin: admin || undefined })}
      />
      <Button look="quiet" icon="trash" label={`${msg("admin.removeRule")}: ${rule.claimed}`} onClick={onRemove} />
    </div>
  );
}
