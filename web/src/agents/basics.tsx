import { groupName, usePeople } from "../account/people";
import { isAdmin, me } from "../api/me";
import { AreaField, SelectField, TextField } from "../ui";
import { w as servers } from "../servers/words";
import { useFault } from "./faults";
import type { PartProps } from "./parts";
import { w } from "./words";

/** What a new thing is called and whose it is: both stay as they are then. */
export function Naming({ draft }: PartProps) {
  const { groups } = usePeople();
  const t = w();
  const { metadata, kind } = draft.doc;
  const options: [string, string][] = [["default", t.yourOwn], ...(me.value?.groups ?? []).map((g): [string, string] => [groups.get(g.group)?.name ?? `group:${g.group}`, t.ofGroup(groupName(g.group))])];
  if (isAdmin.value) options.push(["public", servers().everybody]);
  return (
    <div class="halves agents-naming">
      <TextField label={t.name} hint={t.nameHint} value={metadata.name} maxLength={128} autocomplete="off" spellcheck={false} error={useFault("metadata.name")} onText={(name) => draft.meta({ name })} />
      <SelectField label={t.namespace} hint={t.namespaceHint(t.kinds[kind])} value={metadata.namespace} options={options} error={useFault("metadata.namespace")} onText={(namespace) => draft.meta({ namespace })} />
    </div>
  );
}

/** A sentence on what it is for, which people and team mates read. */
export function Description({ draft }: PartProps) {
  const t = w();
  return <AreaField label={t.description} hint={draft.doc.kind === "Bot" ? t.descriptionOfBot : t.descriptionHint} rows={2} value={draft.doc.metadata.description ?? ""} error={useFault("metadata.description")} onText={(description) => draft.meta({ description })} />;
}
