import { useEffect, useState } from "preact/hooks";
import { title } from "../../features/approvals/phrases";
import { Question } from "../../features/approvals/request";
import { type ApprovalRequest, pendingRequests, known, refresh } from "../../features/approvals/requests";
import { formatTime } from "../../shared/i18n/format";
import { msg } from "../../shared/i18n/messages";
import { Empty, Problem, Tag, Waiting, When } from "../../shared/ui";
import { Page } from "../../shared/ui/page";
import "../../features/approvals/approvals.css";

/** ApprovalsPage lists the pending approvals of the user. */
export default function ApprovalsPage() {
  const [error, setError] = useState<Error>();
  const load = () => {
    setError(undefined);
    refresh().catch(setError);
  };
  useEffect(load, []);
  const shown = pendingRequests.value.filter((a) => a.kind !== "action");
  return (
    <Page title={msg("approvals.title")} lead={msg("approvals.lead")}>
      {error && <Problem error={error} again={load} />}
      {!known.value ? (
        !error && <Waiting for={msg("approvals.waiting")} />
      ) : shown.length ? (
        <ul class="stack">
          {shown.map((a) => (
            <li key={a.id}>
              <RequestCard request={a} />
            </li>
          ))}
        </ul>
      ) : (
        <Empty title={msg("approvals.none")}>{msg("approvals.noneText")}</Empty>
      )}
    </Page>
  );
}

function RequestCard({ request }: { request: ApprovalRequest }) {
  return (
    <article class="card stack tight asks-card">
      <div class="row">
        <h2>{title(request)}</h2>
        {request.deadline && <Tag look="warn">{msg("approvals.until", { time: formatTime(request.deadline) })}</Tag>}
        <span class="push small muted">
          {msg("approvals.asked")} <When time={request.asked} />
        </span>
      </div>
      <Question ask={request} />
      <a class="small" href={`/chat/${request.session}`}>
        {msg("approvals.open")}
      </a>
    </article>
  );
}
