import type { Agent } from "../../features/resources/agents";
import { msg } from "../../shared/i18n/messages";
import { Confirm, done } from "../../shared/ui";
import { remove } from "./saveagent";

/** RemoveAgent confirms the deletion of an agent with all its documents. */
export function RemoveAgent({ agent, onGone, onClose }: { agent: Agent; onGone: () => void; onClose: () => void }) {
  return (
    <Confirm
      title={msg("agents.deleteTitle", { name: agent.name })}
      yes={msg("agents.delete")}
      danger
      onClose={onClose}
      act={async () => {
        await remove(agent);
        done(msg("agents.deleted", { name: agent.name }));
        onGone();
      }}
    >
      <p>{msg("agents.deleteSays")}</p>
    </Confirm>
  );
}
