import { useLocation } from "preact-iso";
import { personName, usePeople } from "../account/people";
import { Refusal, usePages } from "../api/client";
import { isAdmin } from "../api/me";
import { Page } from "../shell/page";
import { ActionButton, Button, Empty, Menu, MenuItem, Shown } from "../ui";
import { asCSV, asJSON, save } from "./export";
import { addressOf, type Filter, filterOf, records } from "./filter";
import { Filters } from "./filters";
import { Records } from "./records";
import { w } from "./words";
import "./audit.css";

/** The audit log: what was done and refused, as far as one may read it. */
export default function Audit() {
  usePeople();
  const t = w();
  const { query, route } = useLocation();
  const filter = filterOf(query);
  const address = addressOf(filter);
  const filtered = address !== "/audit";
  const pages = usePages((after, signal) => records(filter, after, signal), [address]);
  const show = (to: Filter) => route(addressOf(to));
  const nobody = filter.actor && pages.error instanceof Refusal && pages.error.problem.status === 404;
  return (
    <Page title={t.title} lead={isAdmin.value ? t.lead : t.leadOwn} actions={<Export filter={filter} data={pages.data ?? []} />}>
      <Filters key={address} filter={filter} onShow={show} />
      {nobody ? <Empty title={t.unknown(filter.actor!)}>{t.unknownText}</Empty> : (
        <Shown asked={pages}>
          {(found) => found.length === 0
            ? <Empty title={filtered ? t.none : t.empty} actions={filtered && <Button onClick={() => show({})}>{t.reset}</Button>}>{filtered ? t.noneText : t.emptyText}</Empty>
            : (
              <>
                <Records records={found} filter={filter} onShow={show} />
                <p class="small muted" role="status">{t.shown(found.length, !!pages.more)}</p>
                {pages.more && <div><ActionButton act={pages.more}>{t.more}</ActionButton></div>}
              </>
            )}
        </Shown>
      )}
    </Page>
  );
}

function Export({ filter, data }: { filter: Filter; data: Parameters<typeof asCSV>[0] }) {
  const t = w();
  if (data.length === 0) return null;
  const name = ["audit", filter.actor, filter.action, filter.decision].filter(Boolean).join("-");
  return (
    <Menu label={t.exportAs} icon="download" text={<span>{t.exportAs}</span>}>
      <MenuItem onClick={() => save(`${name}.csv`, "text/csv", asCSV(data, personName))}>{t.csv}</MenuItem>
      <MenuItem onClick={() => save(`${name}.json`, "application/json", asJSON(data))}>{t.json}</MenuItem>
    </Menu>
  );
}
