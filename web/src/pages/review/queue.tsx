import { useUserNames, useNamespaceNames } from "../../features/skills/namespaces";
import { api, got, type Schema, usePages } from "../../shared/api/client";
import { count } from "../../shared/i18n/format";
import { findMsg, msg } from "../../shared/i18n/messages";
import { Empty, More, Shown, Tag, When } from "../../shared/ui";

/** Queue lists the versions that need the user's decision, oldest first. */
export function Queue() {
  const pages = usePages(
    (after, signal) => got(api.GET("/api/v1/reviews", { params: { query: { after } }, signal })),
    [],
  );
  return (
    <>
      <Shown asked={pages} waiting={msg("review.waiting")}>
        {(items) =>
          items.length ? (
            <Table items={items} />
          ) : (
            <Empty
              title={msg("review.none")}
              actions={
                <a class="button" href="/library">
                  {msg("review.library")}
                </a>
              }
            >
              {msg("review.noneText")}
            </Empty>
          )
        }
      </Shown>
      <More pages={pages} />
    </>
  );
}

function Table({ items }: { items: Schema["Waiting"][] }) {
  const place = useNamespaceNames();
  const person = useUserNames();
  return (
    <div class="table-wrap" role="region" aria-label={msg("review.title")} tabIndex={0}>
      <table class="table review-queue" role="table">
        <thead>
          <tr>
            <th>{msg("review.skill")}</th>
            <th>{msg("review.version")}</th>
            <th>{msg("review.where")}</th>
            <th>{msg("review.by")}</th>
            <th class="number">{msg("review.scripts")}</th>
            <th>{msg("review.findings")}</th>
          </tr>
        </thead>
        <tbody>
          {items.map(({ name, namespace, version: v }) => (
            <tr key={v.skill_id + v.number}>
              <td>
                <a href={`/review/${v.skill_id}/${v.number}`}>
                  <strong>{name}</strong>
                </a>
              </td>
              <td>{v.version ?? v.number}</td>
              <td>{place(namespace)}</td>
              <td>
                {person(v.createdBy)}, <When time={v.created} />
              </td>
              <td class="number">{count(v.scripts)}</td>
              <td>
                <Found version={v} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** Found counts the findings of each severity. */
export function Found({ version: v }: { version: Schema["SkillVersion"] }) {
  if (v.unscanned) return <Tag look="warn">{msg("review.unscanned")}</Tag>;
  const found = (["high", "medium", "low", "info"] as const).filter((level) => v.findings?.[level]);
  if (!found.length) return <span class="muted">{msg("review.nobody")}</span>;
  return (
    <span class="row">
      {found.map((level) => (
        <Tag key={level} look={level === "high" ? "bad" : level === "medium" ? "warn" : ""}>
          {count(v.findings![level]!)} {findMsg("review.levels", level)}
        </Tag>
      ))}
    </span>
  );
}
