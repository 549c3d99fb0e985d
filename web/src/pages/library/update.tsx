import { api, got, useLoad } from "../../shared/api/client";
import { msg } from "../../shared/i18n/messages";
import { ActionButton, Button, Dialog, done, Shown } from "../../shared/ui";
import { Compared, differs } from "./compare";
import type { Opened } from "./opened";
import { SourceLink } from "./overview";

/** Update shows what changed at the source of a skill, and updates it. */
export function Update({ skill, again, onClose }: Opened) {
  const upgrade = useLoad(
    (signal) => got(api.GET("/api/v1/skills/{skill}/upgrade", { signal, params: { path: { skill: skill.id } } })),
    [skill.id],
  );

  const newer = !!upgrade.data && differs(upgrade.data.diff);
  const moved = !!upgrade.data && !!upgrade.data.commit && upgrade.data.commit !== skill.source?.commit;
  const failing = !!upgrade.data && !!skill.sourceStatus?.failedSince; // with the access of the user who imported it
  const take = async () => {
    const came = await got(
      api.POST("/api/v1/skills/update", { body: { namespace: skill.namespace, ids: [skill.id] } }),
    );
    const changed = [...came.updated, ...came.skipped][0];
    if (changed?.pending) done(msg("skill.updateWaits", { n: changed.number ?? 0 }));
    else if (!newer)
      done(msg("skill.upToDate")); // only the new commit is stored
    else
      done(
        came.updated.length
          ? msg("skill.updated", { n: came.updated[0]!.number ?? 0 })
          : msg("skill.notUpdated", { why: changed?.reason ?? "" }),
      );
    onClose();
    await again();
  };
  const actions = (
    <>
      <Button onClick={onClose}>{newer ? msg("skill.cancel") : msg("skill.close")}</Button>
      {(newer || moved || failing) && !skill.source?.pinned && (
        <ActionButton look="primary" act={take}>
          {newer ? msg("skill.takeUpdate") : moved ? msg("skill.noteCommit") : msg("skill.useOwnAccess")}
        </ActionButton>
      )}
    </>
  );
  return (
    <Dialog wide title={msg("skill.updateTitle")} onClose={onClose} actions={actions}>
      {skill.source && (
        <p class="muted">
          <SourceLink source={{ ...skill.source, commit: upgrade.data?.commit ?? skill.source.commit }} />
        </p>
      )}
      {skill.source?.pinned && <p class="note warn">{msg("skill.updatePinned")}</p>}
      <Shown asked={upgrade} waiting={msg("skill.waitingPlace")}>
        {({ diff }) => (newer ? <Compared diff={diff} /> : <p class="note good">{msg("skill.upToDate")}</p>)}
      </Shown>
    </Dialog>
  );
}
