import { useLocation } from "preact-iso";
import { addressOf, ranges, totals, type View, viewOf } from "../../features/usage/totals";
import { groupName, useUserNames } from "../../features/users/users";
import { useLoad } from "../../shared/api/client";
import { hasRole, isAdmin, me, ways } from "../../shared/api/me";
import { msg } from "../../shared/i18n/messages";
import { Button, Empty, SelectField, Shown } from "../../shared/ui";
import { Page } from "../../shared/ui/page";
import { Breakdown } from "./breakdown";
import { Daily } from "./daily";
import { Skills } from "./skills";
import { Tiles } from "./tiles";
import { Unused } from "./unused";
import "./usage.css";

/** Usage shows the usage by day, by owner and by skill. */
export default function Usage() {
  const { query, route } = useLocation();
  const view = viewOf(query);
  const show = (change: Partial<View>) => route(addressOf({ ...view, ...change }), true);
  const load = useLoad((signal) => totals(view, "day", signal), [view.days, view.of]);
  return (
    <Page title={msg("usage.title")} lead={msg("usage.lead")} actions={<Range view={view} onShow={show} />}>
      <Whose view={view} onShow={show} />
      <Shown asked={load}>
        {(found) =>
          found.items.length === 0 ? (
            <Empty
              title={msg("usage.empty")}
              actions={
                <a class="button" href="/">
                  {msg("usage.toChat")}
                </a>
              }
            >
              {msg("usage.emptyText")}
            </Empty>
          ) : (
            <>
              <Tiles total={found.total} />
              <Daily items={found.items} view={view} onShow={show} />
              <Breakdown view={view} onShow={show} />
            </>
          )
        }
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
  return (
    <div class="usage-range" role="group" aria-label={msg("usage.range")}>
      {ranges.map((n) => (
        <Button
          key={n}
          small
          look={view.days === n ? "" : "quiet"}
          aria-pressed={view.days === n}
          onClick={() => onShow({ days: n })}
        >
          {msg("usage.days", { count: n })}
        </Button>
      ))}
    </div>
  );
}

/** Whose selects the owner: all for administrators, else the user and managed groups. */
function Whose({ view, onShow }: Controls) {
  const { groups } = useUserNames();
  if (ways.value?.mode === "single") return null;
  const ids = isAdmin.value
    ? [...groups.keys()]
    : me.value!.groups.map((g) => g.group).filter((id) => hasRole(id, "maintainer"));
  const options: [string, string][] = [
    ...(isAdmin.value
      ? ([
          ["", msg("usage.everybody")],
          ["me", msg("usage.me")],
        ] as [string, string][])
      : ([["", msg("usage.me")]] as [string, string][])),
    ...ids.map((id): [string, string] => [id, groupName(id)]),
  ];
  if (options.length === 1) return null;
  return (
    <div class="usage-whose">
      <SelectField label={msg("usage.of")} value={view.of} onText={(of) => onShow({ of })} options={options} />
    </div>
  );
}
