import { useLocation } from "preact-iso";
import type { Schema } from "../../shared/api/client";
import { msg } from "../../shared/i18n/messages";
import { Button, useConfirm } from "../../shared/ui";
import { moveDraft, storedDraft } from "./drafts";
import type { Work } from "./draftstate";

/** NameTaken offers ways out of a name conflict. */
export function NameTaken({ work, taken }: { work: Work; taken: Schema["Taken"] }) {
  const { route } = useLocation();
  const id = taken.skill_id;
  const confirm = useConfirm();
  const join = async () => {
    const at = new Date().toISOString();
    moveDraft(work.key, { key: id!, of: id, name: work.name, at, files: work.files, touched: true });
    work.markSaved();
    route(`/compose/${encodeURIComponent(id!)}`);
  };
  /** ask asks before the draft replaces another one. */
  const ask = () => {
    if (!storedDraft(id!)?.touched) return void join();
    confirm.ask({
      title: msg("compose.replaceDraftTitle", { name: work.name }),
      children: <p>{msg("compose.replaceDraftText")}</p>,
      yes: msg("compose.replaceDraft"),
      danger: true,
      act: join,
    });
  };
  return (
    <div class="note warn">
      {msg("compose.takenText")}
      {id && (
        <div class="row">
          {taken.mayAddVersion && (
            <Button small onClick={ask}>
              {msg("compose.takenMine")}
            </Button>
          )}
          <a class="button small" href={`/library/${encodeURIComponent(id)}`}>
            {msg("compose.takenOpen")}
          </a>
        </div>
      )}
      {confirm.open}
    </div>
  );
}
