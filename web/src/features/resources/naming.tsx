import { hasRole, isAdmin, me } from "../../shared/api/me";
import { msg } from "../../shared/i18n/messages";
import { AreaField, SelectField, TextField } from "../../shared/ui";
import { groupName, roleName, useUserNames } from "../users/users";
import type { PartProps } from "./editorprops";
import { useFault } from "./faults";

/** Naming edits the name and namespace of a new resource. Both are final. */
export function Naming({ draft }: PartProps) {
  const { groups } = useUserNames();

  const { kind, metadata } = draft.doc;
  const least = kind === "Model" || kind === "MCPServer" ? "maintainer" : "developer";
  const options: [string, string, boolean?][] = [
    ["default", msg("agents.yourOwn")],
    ...(me.value?.groups ?? []).map((g): [string, string, boolean] => {
      const name = groupName(g.group);
      const may = hasRole(g.group, least);
      const text = may ? msg("agents.ofGroup", { name }) : msg("agents.ofGroupNeeds", { name, role: roleName(least) });
      return [groups.get(g.group)?.name ?? `group:${g.group}`, text, !may];
    }),
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
