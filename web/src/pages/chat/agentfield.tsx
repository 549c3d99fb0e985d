import { useId } from "preact/hooks";
import { api, got, type Schema, useLoad } from "../../shared/api/client";
import { msg } from "../../shared/i18n/messages";

const kinds = ["Team", "Bot", "Ghost"] as const;

type Agent = Schema["Agent"];

/** useAgents loads the agents. Of documents with one name, users talk to the one that contains the others. */
function useAgents() {
  return useLoad(async (signal) => {
    const { items } = await got(api.GET("/api/v1/agents", { signal }));
    const agents = new Map<string, Agent>();
    for (const k of kinds.flatMap((kind) => items.filter((a) => a.kind === kind))) {
      const key = `${k.metadata.namespace}/${k.metadata.name}`;
      if (!agents.has(key)) agents.set(key, k);
    }
    return [...agents.values()].sort((a, b) => a.metadata.name.localeCompare(b.metadata.name));
  }, []);
}

/** nameOf returns the name of an agent in the conversation API. */
const nameOf = (k: Agent) => `${k.kind}/${k.metadata.namespace || "default"}/${k.metadata.name}`;

/** agentTitle returns the title of a conversation's agent. */
export const agentTitle = (agent: string) => agent.split("/").at(-1) ?? agent;

/** AgentField selects the agent of a new conversation. It is empty if there are no agents. */
export function AgentField({
  agent,
  disabled,
  onAgent,
}: {
  agent: string;
  disabled: boolean;
  onAgent: (agent: string) => void;
}) {
  const id = useId();
  const { data } = useAgents();
  const all = data ?? [];
  if (!all.length && !agent) return null;
  const chosen = all.find((k) => nameOf(k) === agent);
  return (
    <div class="chat-agent">
      <label for={id} class="small muted">
        {msg("chat.with")}
      </label>
      <select id={id} class="input" value={agent} disabled={disabled} onChange={(e) => onAgent(e.currentTarget.value)}>
        <option value="">{msg("chat.nobody")}</option>
        {agent && !chosen && (
          <option value={agent}>
            {agentTitle(agent)}
            {data && ` (${msg("chat.agentGone")})`}
          </option>
        )}
        {all.map((k) => (
          <option key={nameOf(k)} value={nameOf(k)}>
            {k.metadata.name}
          </option>
        ))}
      </select>
      {chosen?.metadata.description && (
        <span class="small muted truncate grow" title={chosen.metadata.description}>
          {chosen.metadata.description}
        </span>
      )}
    </div>
  );
}
