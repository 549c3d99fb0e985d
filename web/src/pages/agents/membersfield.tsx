import type { Agent } from "../../features/resources/agents";
import type { Member } from "../../features/resources/document";
import { useFault } from "../../features/resources/faults";
import { Sortable } from "../../features/resources/sortable";
import { OneMember, cleanMember } from "../../features/resources/team";
import { namespaceName } from "../../features/servers/serverlist";
import { msg } from "../../shared/i18n/messages";
import { SelectField } from "../../shared/ui";
import { isMember, memberOf, type AgentMember } from "./form";
import type { InputState } from "./inputstate";

const keyOf = (m: AgentMember) => `${m.ghost ? "Ghost" : "Bot"}/${m.botRef.namespace ?? ""}/${m.botRef.name}`;

/** MembersField selects the agents that an agent can delegate tasks to. Members make it a team. */
export function MembersField({ state, all }: { state: InputState; all: Agent[] }) {
  const team = state.saved?.team;
  const { members, ghost } = state.input;
  const { namespace: home, name } = ghost.metadata;
  const fault = useFault("spec.members", true);
  const possible = all.filter((a) => (a.bot || a.ghost) && !(a.name === name && a.namespace === home));
  const left = possible.filter((a) => !members.some((m) => isMember(m, a, home)));
  const set = (at: number, change: Partial<Member>) =>
    state.change({ members: members.map((m, i) => (i === at ? cleanMember({ ...m, ...change }) : m)) });
  const lastStays = members.length === 1 && !!team && !team.status.can?.includes("kind.delete");
  return (
    <>
      <p class="small muted">{msg("agents.membersSay")}</p>
      {members.length > 0 && (
        <Sortable
          label={msg("agents.members")}
          items={members}
          keyOf={keyOf}
          nameOf={(m) => m.botRef.name}
          onOrder={(members) => state.change({ members })}
        >
          {(m, i) => (
            <OneMember
              member={m}
              gone={!possible.some((a) => isMember(m, a, home))}
              onSet={(change) => set(i, change)}
              onRemove={lastStays ? undefined : () => state.change({ members: members.filter((_, at) => at !== i) })}
            />
          )}
        </Sortable>
      )}
      {lastStays && <p class="small muted">{msg("agents.lastMember")}</p>}
      {fault && (
        <p class="agents-fault" role="alert">
          {fault}
        </p>
      )}
      {left.length > 0 ? (
        <SelectField
          label={msg("agents.addMember")}
          value=""
          options={[
            ["", msg("agents.choose")],
            ...left.map((a, i): [string, string] => [String(i), `${a.name} (${namespaceName(a.namespace)})`]),
          ]}
          onText={(at) => {
            const chosen = left[Number(at)];
            if (at && chosen) state.change({ members: [...members, memberOf(chosen)] });
          }}
        />
      ) : (
        !members.length && <p class="small muted">{msg("agents.noOthers")}</p>
      )}
    </>
  );
}
