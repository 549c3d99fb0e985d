import { useLocation } from "preact-iso";
import { api, got, useLoad, type Schema } from "../../shared/api/client";
import { msg } from "../../shared/i18n/messages";
import { ActionButton, Button, Dialog, done, Shown } from "../../shared/ui";
import { titleOf } from "./filter";
import { ReferenceList } from "./references";

/** Delete deletes a skill after it has shown what refers to it. */
export function Delete({ skill, onClose }: { skill: Schema["SkillDetail"]; onClose: () => void }) {
  const { route } = useLocation();
  const ask = (query: { dry?: boolean; unbind?: boolean }, signal?: AbortSignal) =>
    got(api.DELETE("/api/v1/skills/{skill}", { signal, params: { path: { skill: skill.id }, query } }));
  const dry = useLoad((signal) => ask({ dry: true }, signal), [skill.id]);
  const used = !!dry.data && !!(dry.data.references.seen.length || dry.data.references.others);

  const act = async () => {
    await ask({ unbind: used });
    onClose();
    done(msg("skill.deleted", { n: titleOf(skill) }));
    route("/library", true);
  };
  const actions = (
    <>
      <Button onClick={onClose}>{msg("skill.cancel")}</Button>
      {dry.data && (
        <ActionButton look="danger" act={act}>
          {used ? msg("skill.deleteAll") : msg("skill.deleteNow")}
        </ActionButton>
      )}
    </>
  );
  return (
    <Dialog title={msg("skill.deleteTitle", { n: titleOf(skill) })} onClose={onClose} actions={actions}>
      <p>{msg("skill.deleteText")}</p>
      <Shown asked={dry} waiting={msg("skill.waitingReferences")}>
        {({ references }) =>
          used ? (
            <div class="note warn">
              <strong>{msg("skill.deleteUsed")}</strong>
              <ReferenceList references={references} />
            </div>
          ) : (
            <p class="note good">{msg("skill.deleteFree")}</p>
          )
        }
      </Shown>
    </Dialog>
  );
}
