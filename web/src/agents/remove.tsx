import { api, got, useAsked } from "../api/client";
import { ActionButton, Button, Dialog, done, Shown } from "../ui";
import { ReferrerList } from "./beside";
import { pathOf, type Place } from "./document";
import { w } from "./words";

/** Asks before a thing is deleted, and says what keeps it. */
export function Remove({ place, onGone, onClose }: { place: Place; onGone: () => void; onClose: () => void }) {
  const t = w();
  const asked = useAsked((signal) => got(api.GET("/api/v1/kinds/{kind}/{namespace}/{name}/referrers", { params: pathOf(place), signal })), []);
  const kept = asked.data ? asked.data.seen.length + asked.data.others > 0 : true;
  const remove = async () => {
    await got(api.DELETE("/api/v1/kinds/{kind}/{namespace}/{name}", { params: pathOf(place) }));
    done(t.deleted(place.name));
    onGone();
  };
  return (
    <Dialog title={t.deleteTitle(place.name)} onClose={onClose} actions={<><Button onClick={onClose}>{t.cancel}</Button><ActionButton look="danger" icon="trash" disabled={kept} act={remove}>{t.delete}</ActionButton></>}>
      <Shown asked={asked} waiting={t.lookingForNames}>
        {(r) => r.seen.length + r.others > 0 ? <><p>{t.keptBy}</p><ReferrerList referrers={r} /></> : <p>{t.deleteSays}</p>}
      </Shown>
    </Dialog>
  );
}
