import { useLocation } from "preact-iso";
import { composeOf } from "../../features/skills/skilladdress";
import { away } from "../../shared/api/client";
import { ago } from "../../shared/i18n/format";
import { msg } from "../../shared/i18n/messages";
import { Button, useConfirm } from "../../shared/ui";
import { deleteDraft, moveDraft, newKey } from "./drafts";
import type { Work } from "./draftstate";

/** Notes shows warnings: an earlier draft, a newer version on the hub, missing permissions. */
export function Notes({ work, again }: { work: Work; again?: () => Promise<void> }) {
  const { of, base, opened = 0, storedDraft: earlier } = work;
  const newest = work.newest?.number ?? 0;
  const earlierWork = of && earlier?.touched && work.changed;
  const ofOther = earlierWork && base !== opened; // the draft of another version than the opened one
  const { route } = useLocation();
  const copy = () => {
    const key = newKey();
    moveDraft(work.key, { key, name: work.name, at: new Date().toISOString(), files: work.files, touched: true });
    work.markSaved();
    route(`/compose?draft=${key}`);
  };
  return (
    <>
      {earlierWork && <Earlier work={work} at={earlier.at} again={again} />}
      {of && opened !== of.number && !ofOther && (
        <div class="note" role="status">
          {msg("compose.notCurrent", { n: opened, now: of.number })}
        </div>
      )}
      {of && base !== undefined && newest > base && (
        <div class="note warn" role="status">
          {msg("compose.moved", { n: newest, base })}
          {opened !== newest && !work.newest?.withheld && (
            <div>
              <a class="button small" href={composeOf(of.id, newest)}>
                {msg("compose.openNewest", { n: newest })}
              </a>
            </div>
          )}
        </div>
      )}
      {of && !of.can.includes("skill.change") && (
        <div class="note warn" role="status">
          {msg("compose.mayNot")}
          <div>
            <Button small icon="copy" onClick={copy}>
              {msg("compose.saveCopy")}
            </Button>
          </div>
        </div>
      )}
      {!work.safe && (
        <div class="note warn" role="status">
          {msg("compose.notKept")}
        </div>
      )}
      {away.value && (
        <div class="note warn" role="status">
          {msg("compose.awayText")}
        </div>
      )}
    </>
  );
}

/** Earlier says that the text is an unsaved draft, and offers to edit the opened version instead. */
function Earlier({ work, at, again }: { work: Work; at: string; again?: () => Promise<void> }) {
  const { base, opened } = work;
  const same = base === opened;
  const confirm = useConfirm();
  const back = async () => {
    deleteDraft(work.key);
    work.change(() => [...work.saved]);
    await again?.();
  };
  const ask = () =>
    confirm.ask({
      title: msg("compose.throwTitle"),
      children: <p>{msg("compose.throwText", { name: work.name })}</p>,
      yes: msg("compose.throwAway"),
      danger: true,
      act: back,
    });
  return (
    <div class="note compose-earlier" role="status">
      <span class="grow">
        {same ? msg("compose.restored", { ago: ago(at) }) : msg("compose.restoredFrom", { ago: ago(at), base: base! })}
      </span>
      <Button small onClick={ask}>
        {same ? msg("compose.fromSaved") : msg("compose.editInstead", { n: opened! })}
      </Button>
      {confirm.open}
    </div>
  );
}
