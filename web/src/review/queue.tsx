import { api, got, type Schema, usePages } from "../api/client";
import { usePeople, usePlaces } from "../library/places";
import { Empty, More, Shown, Tag, When } from "../ui";
import { count } from "../words";
import { w } from "./words";

/** The versions that wait for whoever is signed in, the oldest first. */
export function Queue() {
  const t = w();
  const pages = usePages((after, signal) => got(api.GET("/api/v1/reviews", { params: { query: { after } }, signal })), []);
  return (
    <>
      <Shown asked={pages} waiting={t.waiting}>
        {(items) => (items.length ? <Lists items={items} /> : <Empty title={t.none} actions={<a class="button" href="/library">{t.library}</a>}>{t.noneText}</Empty>)}
      </Shown>
      <More pages={pages} />
    </>
  );
}

/** What has code first: that is what waits. A version of words alone is used as it is, and may be looked at. */
function Lists({ items }: { items: Schema["Waiting"][] }) {
  const t = w();
  const code = items.filter((i) => i.version.code);
  const words = items.filter((i) => !i.version.code);
  return (
    <>
      {code.length ? <Table items={code} /> : <p class="muted">{t.noCode}</p>}
      {!!words.length && <details class="stack tight"><summary>{t.withoutCode(words.length)}</summary><Table items={words} /></details>}
    </>
  );
}

function Table({ items }: { items: Schema["Waiting"][] }) {
  const t = w();
  const place = usePlaces();
  const person = usePeople();
  return (
    <div class="table-wrap" role="region" aria-label={t.title} tabIndex={0}>
      <table class="table review-queue" role="table">
        <thead><tr><th>{t.skill}</th><th>{t.version}</th><th>{t.where}</th><th>{t.by}</th><th class="number">{t.scripts}</th><th>{t.findings}</th></tr></thead>
        <tbody>
          {items.map(({ name, namespace, version: v }) => (
            <tr key={v.skill_id + v.number}>
              <td><a href={`/review/${v.skill_id}/${v.number}`}><strong>{name}</strong></a></td>
              <td>{v.version ?? v.number}</td>
              <td>{place(namespace)}</td>
              <td>{person(v.createdBy)}, <When time={v.created} /></td>
              <td class="number">{count(v.scripts)}</td>
              <td><Found version={v} /></td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** How many findings of each severity there are. */
export function Found({ version: v }: { version: Schema["SkillVersion"] }) {
  const t = w();
  if (v.unscanned) return <Tag look="warn">{t.unscanned}</Tag>;
  const found = (["high", "medium", "low", "info"] as const).filter((level) => v.findings?.[level]);
  if (!found.length) return <span class="muted">{t.nobody}</span>;
  return <span class="row">{found.map((level) => <Tag key={level} look={level === "high" ? "bad" : level === "medium" ? "warn" : ""}>{count(v.findings![level]!)} {t.levels[level]}</Tag>)}</span>;
}
