import { useId } from "preact/hooks";
import { api, got, type Schema, useAsked } from "../api/client";
import { w } from "./words";

const kinds = ["Ghost", "Bot", "Team"] as const;

/** Who can be spoken to, by kind. */
function useAgents() {
  return useAsked(async (signal) => {
    const lists = await Promise.all(kinds.map((kind) => got(api.GET("/api/v1/kinds/{kind}", { params: { path: { kind }, query: { limit: 100 } }, signal }))));
    return lists.map((l) => l.items);
  }, []);
}

/** An agent as conversations name it. */
const nameOf = (k: Schema["Kind"]) => `${k.kind}/${k.metadata.namespace || "default"}/${k.metadata.name}`;

/** What a conversation's agent is called. */
export const agentTitle = (agent: string) => agent.split("/").at(-1) ?? agent;

/** Chooses whom a conversation that begins is with. Where there are no agents nothing is asked. */
export function AgentField({ agent, onAgent }: { agent: string; onAgent: (agent: string) => void }) {
  const t = w();
  const id = useId();
  const { data } = useAgents();
  const all = data?.flat() ?? [];
  if (!all.length && !agent) return null;
  const labels = [t.ghosts, t.bots, t.teams];
  const chosen = all.find((k) => nameOf(k) === agent);
  return (
    <div class="chat-agent">
      <label for={id} class="small muted">{t.with}</label>
      <select id={id} class="input" value={agent} onChange={(e) => onAgent(e.currentTarget.value)}>
        <option value="">{t.nobody}</option>
        {agent && !chosen && <option value={agent}>{agentTitle(agent)}{data && ` (${t.agentGone})`}</option>}
        {(data ?? []).map((list, i) => !!list.length && (
          <optgroup key={kinds[i]} label={labels[i]}>{list.map((k) => <option key={nameOf(k)} value={nameOf(k)}>{k.metadata.name}</option>)}</optgroup>
        ))}
      </select>
      {chosen?.metadata.description && <span class="small muted truncate grow" title={chosen.metadata.description}>{chosen.metadata.description}</span>}
    </div>
  );
}
