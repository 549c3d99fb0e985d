import { useLocation } from "preact-iso";
import { groupName, usePeople } from "../account/people";
import { useAsked } from "../api/client";
import { hasRole, isAdmin, me, ways } from "../api/me";
import { Page } from "../shell/page";
import { Button, Empty, SelectField, Shown } from "../ui";
import { Breakdown } from "./breakdown";
import { Daily } from "./daily";
import { Skills } from "./skills";
import { addressOf, ranges, totals, type View, viewOf } from "./spent";
import { Tiles } from "./tiles";
import { Unused } from "./unused";
import { w } from "./words";
import "./usage.css";

/** How much was used: by day, by whom and of what, and which skills. */
export default function Usage() {
  const t = w();
  const { query, route } = useLocation();
  const view = viewOf(query);
  const show = (change: Partial<View>) => route(addressOf({ ...view, ...change }), true);
  const asked = useAsked((signal) => totals(view, "day", signal), [view.days, view.of]);
  return (
    <Page title={t.title} lead={t.lead} actions={<Range view={view} onShow={show} />}>
      <Whose view={view} onShow={show} />
      <Shown asked={asked}>
        {(found) => found.items.length === 0
          ? <Empty title={t.empty} actions={<a class="button" href="/">{t.toChat}</a>}>{t.emptyText}</Empty>
          : (
            <>
              <Tiles total={found.total} />
              <Daily items={found.items} view={view} onShow={show} />
              <Breakdown view={view} onShow={show} />
            </>
          )}
      </Shown>
      <Skills view={view} />
      <Unused view={view} />
    </Page>
  );
}

interface Controls {
  view: View;
  onShow: (change: Partial<View>) => void;
}

function Range({ view, onShow }: Controls) {
  const t = w();
  return (
    <div class="usage-range" role="group" aria-label={t.range}>
      {ranges.map((n) => <Button key={n} small look={view.days === n ? "" : "quiet"} aria-pressed={view.days === n} onClick={() => onShow({ days: n })}>{t.days(n)}</Button>)}
    </div>
  );
}

/** Whose usage: all to administrators, else one's own, and that of groups whom one looks after. */
function Whose({ view, onShow }: Controls) {
  const t = w();
  const { groups } = usePeople();
  if (ways.value?.mode === "single") return null;
  const ids = isAdmin.value ? [...groups.keys()] : me.value!.groups.map((g) => g.group).filter((id) => hasRole(id, "maintainer"));
  const options: [string, string][] = [...(isAdmin.value ? [["", t.everybody], ["me", t.me]] as [string, string][] : [["", t.me]] as [string, string][]), ...ids.map((id): [string, string] => [id, groupName(id)])];
  if (options.length === 1) return null;
  return <div class="usage-whose"><SelectField label={t.of} value={view.of} onText={(of) => onShow({ of })} options={options} /></div>;
}
