import { msg } from "../../shared/i18n/messages";
import { AreaField, Button, Check, SelectField, Tag, TextField } from "../../shared/ui";
import type { Member, TeamSpec } from "./document";
import type { PartProps } from "./editorprops";
import { useFault } from "./faults";
import { Description } from "./naming";
import { newOfKind } from "./phrases";
import { useChoice } from "./resourcelist";
import { Sortable } from "./sortable";

const keyOf = (m: Member) => `${m.botRef.namespace ?? ""}/${m.botRef.name}`;
const leads = (m: Member) => m.role?.toLowerCase() === "leader";

/** Members edits the members of a team, their order and the leader. */
export function Members(part: PartProps) {
  const spec = part.draft.doc.spec as TeamSpec;
  const members = spec.members ?? [];
  const leader = Math.max(0, members.findIndex(leads));
  const bots = useChoice("Bot", undefined, part.draft.doc.metadata.namespace);
  const fault = useFault("spec.members", true);
  const put = (next: Member[]) => part.draft.spec({ members: next });
  const set = (at: number, change: Partial<Member>) =>
    put(members.map((m, i) => (i === at ? cleanMember({ ...m, ...change }) : m)));
  const lead = (at: number) =>
    put(
      members.map((m, i) =>
        i === at ? { ...m, role: "leader" } : leads(m) ? cleanMember({ ...m, role: undefined }) : m,
      ),
    );
  const left = bots.options.filter(([key]) => !members.some((m) => keyOf(m) === key));
  return (
    <section class="stack">
      <Description {...part} />
      <h2>{msg("agents.members")}</h2>
      <p class="small muted">{msg("agents.membersHint")}</p>
      {bots.load.data?.length === 0 && (
        <p class="note warn">
          {msg("agents.noBots")} <a href="/agents/new?kind=Bot">{newOfKind(msg("agents.kinds.Bot"))}</a>
        </p>
      )}
      <Sortable label={msg("agents.members")} items={members} keyOf={keyOf} nameOf={(m) => m.botRef.name} onOrder={put}>
        {(m, i) => (
          <OneMember
            member={m}
            isLeader={i === leader}
            gone={
              !!bots.load.data && !bots.of(keyOf(m)) && !bots.load.data.some((k) => k.metadata.name === m.botRef.name)
            }
            onSet={(change) => set(i, change)}
            onLead={() => lead(i)}
            onRemove={() => put(members.filter((_, at) => at !== i))}
          />
        )}
      </Sortable>
      {fault && (
        <p class="agents-fault" role="alert">
          {fault}
        </p>
      )}
      {left.length > 0 && (
        <SelectField
          label={msg("agents.addMember")}
          value=""
          options={[["", msg("agents.choose")], ...left]}
          onText={(key) => {
            const botRef = bots.of(key);
            if (botRef) put([...members, { botRef }]);
          }}
        />
      )}
    </section>
  );
}

/** cleanMember removes the empty fields of a member. */
export const cleanMember = (m: Member): Member =>
  Object.fromEntries(
    Object.entries(m).filter(([, v]) => v !== undefined && v !== "" && v !== false),
  ) as unknown as Member;

interface OneProps {
  member: Member;
  /** Whether users talk to it. */
  isLeader?: boolean;
  gone: boolean;
  onSet: (change: Partial<Member>) => void;
  /** Undefined where the leader is fixed. */
  onLead?: () => void;
  /** Undefined for a member that the user may not remove. */
  onRemove?: () => void;
}

/** OneMember edits a member of a team. */
export function OneMember({ member: m, isLeader, gone, onSet, onLead, onRemove }: OneProps) {
  return (
    <div class="stack tight">
      <div class="row">
        <strong>{m.botRef.name}</strong>
        {isLeader && <Tag look="accent">{msg("agents.leader")}</Tag>}
        {gone && <Tag look="bad">{msg("agents.missing")}</Tag>}
        <span class="row push">
          {!isLeader && onLead && (
            <Button small onClick={onLead}>
              {msg("agents.makeLeader")}
            </Button>
          )}
          {onRemove && (
            <Button
              small
              look="quiet"
              icon="close"
              label={msg("agents.removeMember", { name: m.botRef.name })}
              onClick={onRemove}
            />
          )}
        </span>
      </div>
      {!isLeader && (
        <TextField
          label={msg("agents.role")}
          hint={msg("agents.roleHint")}
          value={m.role ?? ""}
          onText={(role) => onSet({ role })}
        />
      )}
      <AreaField
        label={msg("agents.memberPrompt")}
        hint={msg("agents.memberPromptHint")}
        rows={2}
        value={m.prompt ?? ""}
        onText={(prompt) => onSet({ prompt })}
      />
      {!isLeader && (
        <Check
          label={msg("agents.confirm")}
          hint={msg("agents.confirmHint")}
          checked={m.requireConfirmation === true}
          onCheck={(on) => onSet({ requireConfirmation: on || undefined })}
        />
      )}
    </div>
  );
}
