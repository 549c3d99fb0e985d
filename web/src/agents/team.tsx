import { AreaField, Button, Check, SelectField, Tag, TextField } from "../ui";
import { Description } from "./basics";
import type { Member, TeamSpec } from "./document";
import { useFault } from "./faults";
import type { PartProps } from "./parts";
import { Sortable } from "./sortable";
import { useChoice } from "./things";
import { w } from "./words";

const keyOf = (m: Member) => `${m.botRef.namespace ?? ""}/${m.botRef.name}`;
const leads = (m: Member) => m.role?.toLowerCase() === "leader";

/** Who is in a Team, in which order, and who is talked with. */
export function Members(part: PartProps) {
  const t = w();
  const spec = part.draft.doc.spec as TeamSpec;
  const members = spec.members ?? [];
  const leader = Math.max(0, members.findIndex(leads));
  const bots = useChoice("Bot", undefined, part.draft.doc.metadata.namespace);
  const fault = useFault("spec.members", true);
  const put = (next: Member[]) => part.draft.spec({ members: next });
  const set = (at: number, change: Partial<Member>) => put(members.map((m, i) => (i === at ? clean({ ...m, ...change }) : m)));
  const lead = (at: number) => put(members.map((m, i) => (i === at ? { ...m, role: "leader" } : leads(m) ? clean({ ...m, role: undefined }) : m)));
  const left = bots.options.filter(([key]) => !members.some((m) => keyOf(m) === key));
  return (
    <section class="stack">
      <Description {...part} />
      <h2>{t.members}</h2>
      <p class="small muted">{t.membersHint}</p>
      {bots.asked.data?.length === 0 && <p class="note warn">{t.noBots} <a href="/agents/new?kind=Bot">{t.makeOne(t.kinds.Bot)}</a></p>}
      <Sortable label={t.members} items={members} keyOf={keyOf} nameOf={(m) => m.botRef.name} onOrder={put}>
        {(m, i) => <OneMember member={m} isLeader={i === leader} gone={!!bots.asked.data && !bots.of(keyOf(m)) && !bots.asked.data.some((k) => k.metadata.name === m.botRef.name)} onSet={(change) => set(i, change)} onLead={() => lead(i)} onRemove={() => put(members.filter((_, at) => at !== i))} />}
      </Sortable>
      {fault && <p class="agents-fault" role="alert">{fault}</p>}
      {left.length > 0 && <SelectField label={t.addMember} value="" options={[["", t.choose], ...left]} onText={(key) => { const botRef = bots.of(key); if (botRef) put([...members, { botRef }]); }} />}
    </section>
  );
}

const clean = (m: Member): Member => Object.fromEntries(Object.entries(m).filter(([, v]) => v !== undefined && v !== "" && v !== false)) as unknown as Member;

interface OneProps {
  member: Member;
  isLeader: boolean;
  gone: boolean;
  onSet: (change: Partial<Member>) => void;
  onLead: () => void;
  onRemove: () => void;
}

function OneMember({ member: m, isLeader, gone, onSet, onLead, onRemove }: OneProps) {
  const t = w();
  return (
    <div class="stack tight">
      <div class="row">
        <strong>{m.botRef.name}</strong>
        {isLeader && <Tag look="accent">{t.leader}</Tag>}
        {gone && <Tag look="bad">{t.missing}</Tag>}
        <span class="row push">
          {!isLeader && <Button small onClick={onLead}>{t.makeLeader}</Button>}
          <Button small look="quiet" icon="close" label={t.removeMember(m.botRef.name)} onClick={onRemove} />
        </span>
      </div>
      {!isLeader && <TextField label={t.role} hint={t.roleHint} value={m.role ?? ""} onText={(role) => onSet({ role })} />}
      <AreaField label={t.memberPrompt} hint={t.memberPromptHint} rows={2} value={m.prompt ?? ""} onText={(prompt) => onSet({ prompt })} />
      {!isLeader && <Check label={t.confirm} hint={t.confirmHint} checked={m.requireConfirmation === true} onCheck={(on) => onSet({ requireConfirmation: on || undefined })} />}
    </div>
  );
}
