import { api, got, useLoad } from "../../shared/api/client";
import { msg } from "../../shared/i18n/messages";
import { ActionButton, Button, Dialog, done, Shown } from "../../shared/ui";
import { pathOf, type ResourceRef } from "./document";
import { ReferrerList } from "./sidebar";

/** Remove confirms the deletion of a resource and shows what refers to it. */
export function Remove({ place, onGone, onClose }: { place: ResourceRef; onGone: () => void; onClose: () => void }) {
  const load = useLoad(
    (signal) => got(api.GET("/api/v1/kinds/{kind}/{namespace}/{name}/referrers", { params: pathOf(place), signal })),
    [],
  );
  const saved = load.data ? load.data.seen.length + load.data.others > 0 : true;
  const remove = async () => {
    await got(api.DELETE("/api/v1/kinds/{kind}/{namespace}/{name}", { params: pathOf(place) }));
    done(msg("agents.deleted", { name: place.name }));
    onGone();
  };
  return (
    <Dialog
      title={msg("agents.deleteTitle", { name: place.name })}
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>{msg("agents.cancel")}</Button>
          <ActionButton look="danger" icon="trash" disabled={saved} act={remove}>
            {msg("agents.delete")}
          </ActionButton>
        </>
      }
    >
      <Shown asked={load} waiting={msg("agents.lookingForNames")}>
        {(r) =>
          r.seen.length + r.others > 0 ? (
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
