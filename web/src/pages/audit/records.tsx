import { groupName, userName, namespaceName } from "../../features/users/users";
import type { Schema } from "../../shared/api/client";
import { findMsg, msg } from "../../shared/i18n/messages";
import { TableWrap, Tag, When } from "../../shared/ui";
import type { Filter } from "./filter";
import { useNamespaces } from "./filters";

type Record = Schema["Record"];

const looks = { allowed: "", denied: "bad", asked: "warn" } as const;

interface RecordsProps {
  records: Record[];
  filter: Filter;
  onShow: (to: Filter) => void;
}

/**
 * Records is a table of records whose cells filter by their value. It sets ARIA roles, because
 * narrow screens show it as blocks and browsers then drop the table semantics.
 */
export function Records({ records, filter, onShow }: RecordsProps) {
  const places = useNamespaces();
  return (
    <TableWrap label={msg("audit.title")}>
      <table class="table audit-table" role="table">
        <thead role="rowgroup">
          <tr role="row">
            <th role="columnheader" scope="col">
              {msg("audit.when")}
            </th>
            <th role="columnheader" scope="col">
              {msg("audit.who")}
            </th>
            <th role="columnheader" scope="col">
              {msg("audit.action")}
            </th>
            <th role="columnheader" scope="col">
              {msg("audit.subject")}
            </th>
            <th role="columnheader" scope="col">
              {msg("audit.place")}
            </th>
            <th role="columnheader" scope="col">
              {msg("audit.decision")}
            </th>
          </tr>
        </thead>
        <tbody role="rowgroup">
          {records.map((r) => (
            <Row key={r.number} r={r} filter={filter} places={places} onShow={onShow} />
          ))}
        </tbody>
      </table>
    </TableWrap>
  );
}

interface RowProps {
  r: Record;
  filter: Filter;
  places: [string, string][];
  onShow: (to: Filter) => void;
}

function Row({ r, filter, places, onShow }: RowProps) {
  const name = userName(r.actor);
  return (
    <tr role="row">
      <td role="cell">
        <When time={r.at} />
      </td>
      <td role="cell">
        {r.actor ? (
          <Only text={name} onClick={() => onShow({ ...filter, actor: name })} />
        ) : (
          <span class="muted">{name}</span>
        )}
      </td>
      <td role="cell">
        {findMsg("audit.actions", r.action) ?? r.action}
        <div>
          <Only class="small muted mono" text={r.action} onClick={() => onShow({ ...filter, action: r.action })} />
        </div>
      </td>
      <td role="cell" class="audit-subject">
        {called(r) && <div>{called(r)}</div>}
        {r.subject && (
          <Only
            class={called(r) ? "small muted mono" : "mono"}
            text={r.subject}
            onClick={() => onShow({ ...filter, subject: r.subject })}
          />
        )}
        <Details details={r.details} />
      </td>
      <td role="cell">
        {r.namespace && places.some(([n]) => n === r.namespace) ? (
          <Only text={namespaceName(r.namespace)} onClick={() => onShow({ ...filter, namespace: r.namespace })} />
        ) : (
          <span class="muted">{namespaceName(r.namespace)}</span>
        )}
      </td>
      <td role="cell">
        <Tag look={looks[r.decision] ?? ""}>{findMsg("audit.decisions", r.decision) ?? r.decision}</Tag>
      </td>
    </tr>
  );
}

/** called names the subject of a record, if it is a user or has a recorded name. */
function called(r: Record): string {
  const details = r.details as { name?: unknown } | null | undefined;
  if (typeof details?.name === "string" && r.subject !== details.name) return details.name;
  if (!r.subject || !/^[0-9a-f-]{36}$/.test(r.subject)) return "";
  const name = [userName, groupName].map((of) => of(r.subject!)).find((n) => n !== r.subject);
  return name ?? "";
}

/** Only is a cell that filters by its value. */
function Only({ text, onClick, class: more = "" }: { text: string; onClick: () => void; class?: string }) {
  return (
    <button type="button" class={`audit-only ${more}`} title={msg("audit.only", { what: text })} onClick={onClick}>
      {text}
    </button>
  );
}

function Details({ details }: { details: unknown }) {
  if (details === undefined || details === null || (typeof details === "object" && Object.keys(details).length === 0))
    return null;
  return (
    <details class="audit-details">
      <summary class="small">{msg("audit.details")}</summary>
      <pre>{JSON.stringify(details, null, 2)}</pre>
    </details>
  );
}
