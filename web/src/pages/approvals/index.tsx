import { useEffect, useState } from "preact/hooks";
import { title } from "../../features/approvals/inline";
import { Question } from "../../features/approvals/request";
import { type Ask, asks, known, refresh } from "../../features/approvals/requests";
import { moment } from "../../shared/i18n/format";
import { msg } from "../../shared/i18n/messages";
import { Empty, Problem, Tag, Waiting, When } from "../../shared/ui";
import { Page } from "../../shared/ui/page";
import "../../features/approvals/approvals.css";

/** Asks lists the pending approvals of the user. */
export default function Asks() {
  const [error, setError] = useState<Error>();
  const load = () => {
    setError(undefined);
    refresh().catch(setError);
  };
  useEffect(load, []);
  const shown = asks.value.filter((a) => a.kind !== "action");
  return (
    <Page title={msg("approvals.title")} lead={msg("approvals.lead")}>
      {error && <Problem error={error} again={load} />}
      {!known.value ? (
        !error && <Waiting for={msg("approvals.waiting")} />
      ) : shown.length ? (
        <ul class="stack">
          {shown.map((a) => (
            <li key={a.id}>
              <Asked ask={a} />
            </li>
          ))}
        </ul>
      ) : (
        <Empty title={msg("approvals.none")}>{msg("approvals.noneText")}</Empty>
      )}
    </Page>
  );
}

function Asked({ ask }: { ask: Ask }) {
  return (
    <article class="card stack tight asks-card">
      <div class="row">
        <h2>{title(ask)}</h2>
        {ask.deadline && <Tag look="warn">{msg("approvals.until", { time: moment(ask.deadline) })}</Tag>}
        <span class="push small muted">
          {msg("approvals.asked")} <When time={ask.asked} />
        </span>
      </div>
      <Question ask={ask} />
      <a class="small" href={`/chat/${ask.session}`}>
        {msg("approvals.open")}
      </a>
    </article>
  );
}
