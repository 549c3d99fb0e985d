import { isAdmin, me } from "../../shared/api/me";
import { msg } from "../../shared/i18n/messages";
import { AreaField, SelectField, TextField } from "../../shared/ui";
import { groupName, useUserNames } from "../users/users";
import type { PartProps } from "./editorprops";
import { useFault } from "./faults";

/** Naming edits the name and namespace of a new resource. Both are final. */
export function Naming({ draft }: PartProps) {
  const { groups } = useUserNames();

  const { metadata } = draft.doc;
  const options: [string, string][] = [
    ["default", msg("agents.yourOwn")],
    ...(me.value?.groups ?? []).map((g): [string, string] => [
      groups.get(g.group)?.name ?? `group:${g.group}`,
      msg("agents.ofGroup", { name: groupName(g.group) }),
    ]),
  ];
  if (isAdmin.value) options.push(["public", msg("servers.everybody")]);
  return (
    <div class="halves agents-naming">
      <TextField
        label={msg("agents.name")}
        hint={msg("agents.nameHint")}
        value={metadata.name}
        maxLength={128}
        autocomplete="off"
        spellcheck={false}
        error={useFault("metadata.name")}
        onText={(name) => draft.meta({ name })}
      />
      <SelectField
        label={msg("agents.namespace")}
        hint={msg("agents.namespaceHint")}
        value={metadata.namespace}
        options={options}
        error={useFault("metadata.namespace")}
        onText={(namespace) => draft.meta({ namespace })}
      />
    </div>
  );
}

/** Description edits the sentence that users and team leaders read. */
export function Description({ draft }: PartProps) {
  return (
    <AreaField
      label={msg("agents.description")}
      hint={draft.doc.kind === "Bot" ? msg("agents.descriptionOfBot") : msg("agents.descriptionHint")}
      rows={2}
      value={draft.doc.metadata.description ?? ""}
      error={useFault("metadata.description")}
      onText={(description) => draft.meta({ description })}
    />
  );
}
