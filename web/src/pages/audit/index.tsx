import { useLocation } from "preact-iso";
import { save } from "../../features/csv/csv";
import { userName, useUserNames } from "../../features/users/users";
import { Refusal, usePages } from "../../shared/api/client";
import { isAdmin } from "../../shared/api/me";
import { msg } from "../../shared/i18n/messages";
import { ActionButton, Button, Empty, Menu, MenuItem, Shown } from "../../shared/ui";
import { Page } from "../../shared/ui/page";
import { asCSV, asJSON } from "./export";
import { addressOf, type Filter, filterOf, records } from "./filter";
import { Filters } from "./filters";
import { shownRecords } from "./phrases";
import { Records } from "./records";
import "./audit.css";

/** Audit shows the readable part of the audit log. */
export default function Audit() {
  useUserNames();

  const { query, route } = useLocation();
  const filter = filterOf(query);
  const address = addressOf(filter);
  const filtered = address !== "/audit";
  const pages = usePages((after, signal) => records(filter, after, signal), [address]);
  const show = (to: Filter) => route(addressOf(to));
  const nobody = filter.actor && pages.error instanceof Refusal && pages.error.problem.status === 404;
  return (
    <Page
      title={msg("audit.title")}
      lead={isAdmin.value ? msg("audit.lead") : msg("audit.leadOwn")}
      actions={<Export filter={filter} data={pages.data ?? []} />}
    >
      <Filters key={address} filter={filter} onShow={show} />
      {nobody ? (
        <Empty title={msg("audit.unknown", { name: filter.actor! })}>{msg("audit.unknownText")}</Empty>
      ) : (
        <Shown asked={pages}>
          {(found) =>
            found.length === 0 ? (
              <Empty
                title={filtered ? msg("audit.none") : msg("audit.empty")}
                actions={filtered && <Button onClick={() => show({})}>{msg("audit.reset")}</Button>}
              >
                {filtered ? msg("audit.noneText") : msg("audit.emptyText")}
              </Empty>
            ) : (
              <>
                <Records records={found} filter={filter} onShow={show} />
                <p class="small muted" role="status">
                  {shownRecords(found.length, !!pages.more)}
                </p>
                {pages.more && (
                  <div>
                    <ActionButton act={pages.more}>{msg("audit.more")}</ActionButton>
                  </div>
                )}
              </>
            )
          }
        </Shown>
      )}
    </Page>
  );
}

function Export({ filter, data }: { filter: Filter; data: Parameters<typeof asCSV>[0] }) {
  if (data.length === 0) return null;
  const label = msg("audit.exportShown", { count: data.length });
  const name = ["audit", filter.actor, filter.action, filter.decision].filter(Boolean).join("-");
  return (
    <Menu label={label} icon="download" text={<span>{label}</span>}>
      <MenuItem onClick={() => save(`${name}.csv`, "text/csv", asCSV(data, userName))}>{msg("audit.csv")}</MenuItem>
      <MenuItem onClick={() => save(`${name}.json`, "application/json", asJSON(data))}>{msg("audit.json")}</MenuItem>
    </Menu>
  );
}
