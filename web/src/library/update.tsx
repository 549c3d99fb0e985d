import { api, got, useAsked } from "../api/client";
import { ActionButton, Button, Dialog, done, Shown } from "../ui";
import type { Opened } from "./actions";
import { Compared, differs } from "./compare";
import { SourceLink } from "./read";
import { d } from "./words-detail";

/** What is new at the place that a skill was imported from, and taking it. */
export function Update({ skill, again, onClose }: Opened) {
  const upgrade = useAsked((signal) => got(api.GET("/api/v1/skills/{skill}/upgrade", { signal, params: { path: { skill: skill.id } } })), [skill.id]);
  const t = d();
  const newer = !!upgrade.data && differs(upgrade.data.diff);
  const moved = !!upgrade.data && !!upgrade.data.commit && upgrade.data.commit !== skill.source?.commit;
  const take = async () => {
    const came = await got(api.POST("/api/v1/skills/update", { body: { namespace: skill.namespace, ids: [skill.id] } }));
    const skipped = came.skipped[0]?.reason;
    if (!newer) done(t.upToDate); // what is noted is its commit
    else done(came.updated.length ? t.updated(came.updated[0]!.number ?? 0) : t.notUpdated(skipped ?? ""));
    onClose();
    await again();
  };
  const actions = (
    <>
      <Button onClick={onClose}>{newer ? t.cancel : t.close}</Button>
      {(newer || moved) && !skill.source?.pinned && <ActionButton look="primary" act={take}>{newer ? t.takeUpdate : t.noteCommit}</ActionButton>}
    </>
  );
  return (
    <Dialog wide title={t.updateTitle} onClose={onClose} actions={actions}>
      {skill.source && <p class="muted"><SourceLink source={{ ...skill.source, commit: upgrade.data?.commit ?? skill.source.commit }} /></p>}
      {skill.source?.pinned && <p class="note warn">{t.updatePinned}</p>}
      <Shown asked={upgrade} waiting={t.waitingPlace}>
        {({ diff }) => (newer ? <Compared diff={diff} /> : <p class="note good">{t.upToDate}</p>)}
      </Shown>
    </Dialog>
  );
}
