import { groupName, personName, placeName } from "../account/people";
import type { Schema } from "../api/client";
import { TableWrap, Tag, When } from "../ui";
import type { Filter } from "./filter";
import { w } from "./words";

type Record = Schema["Record"];

const looks = { allowed: "", denied: "bad", asked: "warn" } as const;

interface RecordsProps {
  records: Record[];
  filter: Filter;
  onShow: (to: Filter) => void;
}

/**
 * Records as a table. What stands in a cell can be asked for alone. The roles are said as
 * narrow screens show it as blocks, by which browsers forget that it is a table.
 */
export function Records({ records, filter, onShow }: RecordsProps) {
  const t = w();
  return (
    <TableWrap label={t.title}>
      <table class="table audit-table" role="table">
        <thead role="rowgroup"><tr role="row"><th role="columnheader" scope="col">{t.when}</th><th role="columnheader" scope="col">{t.who}</th><th role="columnheader" scope="col">{t.action}</th><th role="columnheader" scope="col">{t.subject}</th><th role="columnheader" scope="col">{t.place}</th><th role="columnheader" scope="col">{t.decision}</th></tr></thead>
        <tbody role="rowgroup">{records.map((r) => <Row key={r.number} r={r} filter={filter} onShow={onShow} />)}</tbody>
      </table>
    </TableWrap>
  );
}

function Row({ r, filter, onShow }: { r: Record; filter: Filter; onShow: (to: Filter) => void }) {
  const t = w();
  const name = personName(r.actor);
  return (
    <tr role="row">
      <td role="cell"><When time={r.at} /></td>
      <td role="cell">{r.actor ? <Only text={name} onClick={() => onShow({ ...filter, actor: name })} /> : <span class="muted">{name}</span>}</td>
      <td role="cell">
        {t.actions[r.action] ?? r.action}
        <div><Only class="small muted mono" text={r.action} onClick={() => onShow({ ...filter, action: r.action })} /></div>
      </td>
      <td role="cell" class="audit-subject">
        {called(r) && <div>{called(r)}</div>}
        {r.subject && <Only class={called(r) ? "small muted mono" : "mono"} text={r.subject} onClick={() => onShow({ ...filter, subject: r.subject })} />}
        <Details details={r.details} />
      </td>
      <td role="cell">{r.namespace ? <Only text={placeName(r.namespace)} onClick={() => onShow({ ...filter, namespace: r.namespace })} /> : <span class="muted">{placeName(r.namespace)}</span>}</td>
      <td role="cell"><Tag look={looks[r.decision] ?? ""}>{t.decisions[r.decision] ?? r.decision}</Tag></td>
    </tr>
  );
}

/** What a subject is called, where it is an id of somebody, or of a thing whose name was noted. */
function called(r: Record): string {
  const details = r.details as { name?: unknown } | null | undefined;
  if (typeof details?.name === "string" && r.subject !== details.name) return details.name;
  if (!r.subject || !/^[0-9a-f-]{36}$/.test(r.subject)) return "";
  const name = [personName, groupName].map((of) => of(r.subject!)).find((n) => n !== r.subject);
  return name ?? "";
}

/** A value of a record; pressed, only records that have it are shown. */
function Only({ text, onClick, class: more = "" }: { text: string; onClick: () => void; class?: string }) {
  return <button type="button" class={`audit-only ${more}`} title={w().only(text)} onClick={onClick}>{text}</button>;
}

function Details({ details }: { details: unknown }) {
  if (details === undefined || details === null || (typeof details === "object" && Object.keys(details).length === 0)) return null;
  return (
    <details class="audit-details">
      <summary class="small">{w().details}</summary>
      <pre>{JSON.stringify(details, null, 2)}</pre>
    </details>
  );
}
