import { useLocation } from "preact-iso";
import { api, got, useAsked, type Schema } from "../api/client";
import { titleOf } from "./filter";
import { ActionButton, Button, Dialog, done, Shown } from "../ui";
import { ReferenceList } from "./references";
import { d } from "./words-detail";

/** Deletes a skill, after what would lose it was shown. */
export function Delete({ skill, onClose }: { skill: Schema["SkillDetail"]; onClose: () => void }) {
  const { route } = useLocation();
  const ask = (query: { dry?: boolean; unbind?: boolean }, signal?: AbortSignal) => got(api.DELETE("/api/v1/skills/{skill}", { signal, params: { path: { skill: skill.id }, query } }));
  const dry = useAsked((signal) => ask({ dry: true }, signal), [skill.id]);
  const used = !!dry.data && !!(dry.data.references.seen.length || dry.data.references.others);
  const t = d();
  const act = async () => {
    await ask({ unbind: used });
    onClose();
    done(t.deleted(titleOf(skill)));
    route("/library", true);
  };
  const actions = (
    <>
      <Button onClick={onClose}>{t.cancel}</Button>
      {dry.data && <ActionButton look="danger" act={act}>{used ? t.deleteAll : t.deleteNow}</ActionButton>}
    </>
  );
  return (
    <Dialog title={t.deleteTitle(titleOf(skill))} onClose={onClose} actions={actions}>
      <p>{t.deleteText}</p>
      <Shown asked={dry} waiting={t.waitingReferences}>
        {({ references }) => (used ? <div class="note warn"><strong>{t.deleteUsed}</strong><ReferenceList references={references} /></div> : <p class="note good">{t.deleteFree}</p>)}
      </Shown>
    </Dialog>
  );
}
