import { api, got, useAsked } from "../../shared/api/client";
import { msg } from "../../shared/i18n/messages";
import { ActionButton, Button, Dialog, done, Shown } from "../../shared/ui";
import { pathOf, type Place } from "./document";
import { ReferrerList } from "./sidebar";

/** Remove confirms the deletion of a resource and shows what refers to it. */
export function Remove({ place, onGone, onClose }: { place: Place; onGone: () => void; onClose: () => void }) {
  const asked = useAsked(
    (signal) => got(api.GET("/api/v1/kinds/{kind}/{namespace}/{name}/referrers", { params: pathOf(place), signal })),
    [],
  );
  const kept = asked.data ? asked.data.seen.length + asked.data.others > 0 : true;
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
          <ActionButton look="danger" icon="trash" disabled={kept} act={remove}>
            {msg("agents.delete")}
          </ActionButton>
        </>
      }
    >
      <Shown asked={asked} waiting={msg("agents.lookingForNames")}>
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
