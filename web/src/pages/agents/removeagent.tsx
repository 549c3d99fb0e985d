import type { Agent } from "../../features/resources/agents";
import { ReferrerList } from "../../features/resources/sidebar";
import { useLoad } from "../../shared/api/client";
import { msg } from "../../shared/i18n/messages";
import { ActionButton, Button, Dialog, done, Shown } from "../../shared/ui";
import { referrersOf, remove } from "./saveagent";

/** RemoveAgent confirms the deletion of an agent with all its documents, and shows what refers to it. */
export function RemoveAgent({ agent, onGone, onClose }: { agent: Agent; onGone: () => void; onClose: () => void }) {
  const load = useLoad((signal) => referrersOf(agent, signal), []);
  const used = load.data ? load.data.seen.length + load.data.others > 0 : true;
  return (
    <Dialog
      title={msg("agents.deleteTitle", { name: agent.name })}
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>{msg("agents.cancel")}</Button>
          <ActionButton
            look="danger"
            icon="trash"
            disabled={used}
            act={async () => {
              await remove(agent);
              done(msg("agents.deleted", { name: agent.name }));
              onGone();
            }}
          >
            {msg("agents.delete")}
          </ActionButton>
        </>
      }
    >
      <Shown asked={load} waiting={msg("agents.lookingForNames")}>
        {(r) =>
          used ? (
            <>
              <p>{msg("agents.keptBy")}</p>
              <ReferrerList referrers={r} />
            </>
          ) : (
            <p>{msg("agents.deleteSays")}</p>
          )
        }
      </Shown>
    </Dialog>
  );
}
