import { useState } from "preact/hooks";
import { groupName, PersonField, usePeople } from "../account/people";
import { isAdmin, me } from "../api/me";
import { Button, SelectField, TextField } from "../ui";
import type { Decision, Filter } from "./filter";
import { w } from "./words";

/** The places whose log one may read: all to administrators, else one's own and those of groups that one owns. */
function usePlaces(): [string, string][] {
  const t = w();
  const { groups } = usePeople();
  const own: [string, string][] = [["", isAdmin.value ? t.everywhere : t.own], [`user:${me.value!.user.id}`, t.mine]];
  const ids = isAdmin.value ? [...groups.keys()] : me.value!.groups.filter((g) => g.role === "owner").map((g) => g.group);
  return [...own, ...ids.map((id): [string, string] => [`group:${id}`, groupName(id)])];
}

/** What is asked for; it is in the address once it is shown. */
export function Filters({ filter, onShow }: { filter: Filter; onShow: (to: Filter) => void }) {
  const t = w();
  const [draft, setDraft] = useState(filter);
  const places = usePlaces();
  if (draft.namespace && !places.some(([p]) => p === draft.namespace)) places.push([draft.namespace, draft.namespace]);
  const set = (change: Filter) => setDraft({ ...draft, ...change });
  const choose = (change: Filter) => onShow({ ...draft, ...change });
  const actions = Object.entries(t.actions).toSorted(([a], [b]) => a.localeCompare(b));
  return (
    <form class="audit-filters" role="search" onSubmit={(e) => { e.preventDefault(); onShow({ ...draft, actor: draft.actor?.trim(), subject: draft.subject?.trim() }); }}>
      {isAdmin.value && <PersonField label={t.actor} value={draft.actor ?? ""} onText={(actor) => set({ actor })} />}
      <SelectField label={t.action} value={draft.action ?? ""} onText={(action) => choose({ action })} options={[["", t.anything], ...withOwn(actions.map(([id, text]): [string, string] => [id, `${id}: ${text}`]), draft.action)]} />
      <SelectField label={t.place} value={draft.namespace ?? ""} onText={(namespace) => choose({ namespace })} options={places} />
      <SelectField label={t.decision} value={draft.decision ?? ""} onText={(d) => choose({ decision: (d || undefined) as Decision | undefined })} options={[["", t.any], ...Object.entries(t.decisions)]} />
      <TextField label={t.subject} value={draft.subject ?? ""} onText={(subject) => set({ subject })} placeholder="Ghost/helper" spellcheck={false} />
      <Button type="submit" icon="search">{t.filter}</Button>
    </form>
  );
}

/** Options with one of the address that is not among them. */
const withOwn = (options: [string, string][], value: string | undefined): [string, string][] =>
  value && !options.some(([id]) => id === value) ? [...options, [value, value]] : options;
