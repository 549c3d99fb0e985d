import { useLocation } from "preact-iso";
import type { Schema } from "../../shared/api/client";
import { msg } from "../../shared/i18n/messages";
import { Button } from "../../shared/ui";
import { forget, keep } from "./drafts";
import type { Work } from "./draftstate";

/** NameTaken offers ways out of a name conflict. */
export function NameTaken({ work, taken }: { work: Work; taken: Schema["Taken"] }) {
  const { route } = useLocation();
  const id = taken.skill_id;
  const join = () => {
    keep({ key: id!, of: id, name: work.name, at: new Date().toISOString(), files: work.files, touched: true });
    work.markSaved();
    forget(work.key);
    route(`/compose/${encodeURIComponent(id!)}`);
  };
  return (
    <div class="note warn">
      {msg("compose.takenText")}
      {id && (
        <div class="row">
          {taken.mayAddVersion && (
            <Button small onClick={join}>
              {msg("compose.takenMine")}
            </Button>
          )}
          <a class="button small" href={`/library/${encodeURIComponent(id)}`}>
            {msg("compose.takenOpen")}
          </a>
        </div>
      )}
    </div>
  );
}
