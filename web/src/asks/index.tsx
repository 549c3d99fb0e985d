import { useEffect, useState } from "preact/hooks";
import { Page } from "../shell/page";
import { Empty, Problem, Tag, Waiting, When } from "../ui";
import { moment } from "../words";
import { title } from "./inline";
import { Question } from "./question";
import { type Ask, asks, known, refresh } from "./waiting";
import { w } from "./words";
import "./asks.css";

/** Everything that waits for whoever is signed in. */
export default function Asks() {
  const t = w();
  const [error, setError] = useState<Error>();
  const load = () => {
    setError(undefined);
    refresh().catch(setError);
  };
  useEffect(load, []);
  const shown = asks.value.filter((a) => a.kind !== "action");
  return (
    <Page title={t.title} lead={t.lead}>
      {error && <Problem error={error} again={load} />}
      {!known.value ? !error && <Waiting for={t.waiting} /> : shown.length ? <ul class="stack">{shown.map((a) => <li key={a.id}><Asked ask={a} /></li>)}</ul> : <Empty title={t.none}>{t.noneText}</Empty>}
    </Page>
  );
}

function Asked({ ask }: { ask: Ask }) {
  const t = w();
  return (
    <article class="card stack tight asks-card">
      <div class="row">
        <h2>{title(ask)}</h2>
        {ask.deadline && <Tag look="warn">{t.until(moment(ask.deadline))}</Tag>}
        <span class="push small muted">{t.asked} <When time={ask.asked} /></span>
      </div>
      <Question ask={ask} />
      <a class="small" href={`/chat/${ask.session}`}>{t.open}</a>
    </article>
  );
}
