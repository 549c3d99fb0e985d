import { useLocation } from "preact-iso";
import type { Schema } from "../api/client";
import { Button } from "../ui";
import { forget, keep } from "./kept";
import { w } from "./words";
import type { Work } from "./work";

/** What can be done where another skill has the name. */
export function Taken({ work, taken }: { work: Work; taken: Schema["Taken"] }) {
  const { route } = useLocation();
  const id = taken.skill_id;
  const join = () => {
    keep({ key: id!, of: id, name: work.name, at: new Date().toISOString(), files: work.files, touched: true });
    work.settle();
    forget(work.key);
    route(`/compose/${encodeURIComponent(id!)}`);
  };
  return (
    <div class="note warn">
      {w().takenText}
      {id && <div class="row">{taken.mayAddVersion && <Button small onClick={join}>{w().takenMine}</Button>}<a class="button small" href={`/library/${encodeURIComponent(id)}`}>{w().takenOpen}</a></div>}
    </div>
  );
}
