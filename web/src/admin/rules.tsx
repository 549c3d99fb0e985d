import { useState } from "preact/hooks";
import { groupName, roleName, usePeople } from "../account/people";
import { useSend } from "../account/send";
import { api, got, Refusal, useAsked, type Schema } from "../api/client";
import { ways } from "../api/me";
import { Button, Check, done, Empty, Problem, SelectField, Shown, TextField } from "../ui";
import { Part } from "../settings/sections";
import { Lost } from "./switch";
import { w } from "./words";

type Rule = Schema["Rule"];

const roles: NonNullable<Rule["role"]>[] = ["reporter", "developer", "maintainer", "owner"];

/** What somebody is here by the groups that a provider says. */
export function Rules() {
  const t = w();
  const asked = useAsked((signal) => got(api.GET("/api/v1/settings/sign-in", { signal })), []);
  return (
    <Part title={t.tabs["sign-in"]} lead={t.rulesText}>
      {!ways.value?.provider && <div class="note warn">{t.noProvider}</div>}
      <Shown asked={asked}>{(rules) => <Form key={rules.generation} rules={rules} set={asked.set} again={asked.again} />}</Shown>
    </Part>
  );
}

function Form({ rules, set, again }: { rules: Schema["Rules"]; set: (r: Schema["Rules"]) => void; again: () => Promise<void> }) {
  const t = w();
  const [list, setList] = useState(rules.rules);
  const { send, busy, error } = useSend(async () => {
    set(await got(api.PUT("/api/v1/settings/sign-in", { body: { rules: list, generation: rules.generation } })));
    done(t.saved);
  });
  const change = (at: number, rule: Rule) => setList(list.map((r, i) => (i === at ? rule : r)));
  const changed = JSON.stringify(list) !== JSON.stringify(rules.rules);
  const lost = error instanceof Refusal && error.problem.code === "changed";
  return (
    <form class="stack" onSubmit={send}>
      {list.length === 0 && <Empty title={t.noRules}>{t.noRulesText}</Empty>}
      <div class="admin-rules">{list.map((r, i) => <RuleRow key={i} rule={r} onChange={(to) => change(i, to)} onRemove={() => setList(list.filter((_, at) => at !== i))} />)}</div>
      {lost ? <Lost again={again} /> : !!error && <Problem error={error} />}
      <div class="row">
        <Button icon="plus" onClick={() => setList([...list, { claimed: "", role: "reporter" }])}>{t.addRule}</Button>
        <Button type="submit" look="primary" disabled={!changed} aria-busy={busy || undefined}>{t.saveRules}</Button>
      </div>
    </form>
  );
}

function RuleRow({ rule, onChange, onRemove }: { rule: Rule; onChange: (r: Rule) => void; onRemove: () => void }) {
  const t = w();
  const { groups } = usePeople();
  const places: [string, string][] = [["", t.noGroup], ...[...groups.keys()].map((id): [string, string] => [id, groupName(id)])];
  if (rule.group && !groups.has(rule.group)) places.push([rule.group, rule.group]);
  return (
    <div class="admin-rule" role="group" aria-label={rule.claimed || t.addRule}>
      <TextField label={t.claimed} value={rule.claimed} onText={(claimed) => onChange({ ...rule, claimed })} required maxLength={255} autocapitalize="none" spellcheck={false} />
      <SelectField label={t.group} value={rule.group ?? ""} onText={(group) => onChange({ ...rule, group: group || undefined, role: group ? (rule.role ?? "reporter") : undefined })} options={places} />
      <SelectField label={t.role} value={rule.group ? (rule.role ?? "reporter") : ""} disabled={!rule.group} onText={(role) => onChange({ ...rule, role: role as Rule["role"] })} options={rule.group ? roles.map((r): [string, string] => [r, roleName(r)]) : [["", "–"]]} />
      <Check label={t.gives} checked={rule.admin ?? false} onCheck={(admin) => onChange({ ...rule, admin: admin || undefined })} />
      <Button look="quiet" icon="trash" label={`${t.removeRule}: ${rule.claimed}`} onClick={onRemove} />
    </div>
  );
}
