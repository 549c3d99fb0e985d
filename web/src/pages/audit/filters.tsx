import { useState } from "preact/hooks";
import { groupName, UserField, useUserNames } from "../../features/users/users";
import { isAdmin, me } from "../../shared/api/me";
import { messagesOf, msg } from "../../shared/i18n/messages";
import { Button, SelectField, TextField } from "../../shared/ui";
import type { Decision, Filter } from "./filter";

/**
 * useNamespaces returns the namespaces whose log the user may read: all for administrators, else the
 * user's own and those of owned groups.
 */
export function useNamespaces(): [string, string][] {
  const { groups } = useUserNames();
  const own: [string, string][] = [
    ["", isAdmin.value ? msg("audit.everywhere") : msg("audit.own")],
    [`user:${me.value!.user.id}`, msg("audit.mine")],
  ];
  const ids = isAdmin.value
    ? [...groups.keys()]
    : me.value!.groups.filter((g) => g.role === "owner").map((g) => g.group);
  return [...own, ...ids.map((id): [string, string] => [`group:${id}`, groupName(id)])];
}

/** Filters edits the filter. Applying it puts it into the address. */
export function Filters({ filter, onShow }: { filter: Filter; onShow: (to: Filter) => void }) {
  const [draft, setDraft] = useState(filter);
  const places = useNamespaces();
  if (draft.namespace && !places.some(([p]) => p === draft.namespace)) places.push([draft.namespace, draft.namespace]);
  const set = (change: Filter) => setDraft({ ...draft, ...change });
  const choose = (change: Filter) => onShow({ ...draft, ...change });
  const actions = messagesOf("audit.actions").toSorted(([a], [b]) => a.localeCompare(b));
  return (
    <form
      class="audit-filters"
      role="search"
      onSubmit={(e) => {
        e.preventDefault();
        onShow({ ...draft, actor: draft.actor?.trim(), subject: draft.subject?.trim() });
      }}
    >
      {isAdmin.value && (
        <UserField label={msg("audit.actor")} value={draft.actor ?? ""} onText={(actor) => set({ actor })} />
      )}
      <SelectField
        label={msg("audit.action")}
        value={draft.action ?? ""}
        onText={(action) => choose({ action })}
        options={[
          ["", msg("audit.anything")],
          ...withOwn(
            actions.map(([id, text]): [string, string] => [id, `${id}: ${text}`]),
            draft.action,
          ),
        ]}
      />
      <SelectField
        label={msg("audit.place")}
        value={draft.namespace ?? ""}
        onText={(namespace) => choose({ namespace })}
        options={places}
      />
      <SelectField
        label={msg("audit.decision")}
        value={draft.decision ?? ""}
        onText={(d) => choose({ decision: (d || undefined) as Decision | undefined })}
        options={[["", msg("audit.any")], ...messagesOf("audit.decisions")]}
      />
      <TextField label={msg("audit.since")} type="date" value={draft.since ?? ""} onText={(since) => set({ since })} />
      <TextField label={msg("audit.until")} type="date" value={draft.until ?? ""} onText={(until) => set({ until })} />
      <TextField
        label={msg("audit.subject")}
        value={draft.subject ?? ""}
        onText={(subject) => set({ subject })}
        placeholder="Ghost/helper"
        spellcheck={false}
      />
      <Button type="submit" icon="search">
        {msg("audit.filter")}
      </Button>
    </form>
  );
}

/** withOwn adds the current value to the options if it is missing. */
const withOwn = (options: [string, string][], value: string | undefined): [string, string][] =>
  value && !options.some(([id]) => id === value) ? [...options, [value, value]] : options;
