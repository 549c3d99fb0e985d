import type { Schema } from "../../shared/api/client";
import { Diff } from "../../shared/content";
import { unified } from "../../shared/content/makediff";
import { msg } from "../../shared/i18n/messages";
import { Tag } from "../../shared/ui";

export type Change = Schema["Change"];

/** ChangeView shows the faults of a document and every changed value. */
export function ChangeView({
  change,
  before,
  after,
  findings = true,
}: {
  change: Change;
  before?: unknown;
  after?: unknown;
  findings?: boolean;
}) {
  const wrong = change.findings.filter((d) => d.severity !== "info");
  return (
    <section class="stack tight">
      <h3 class="row">
        {change.kind} {change.name}
        {!change.stale && <Tag look={looks[change.outcome]}>{msg(`agents.outcomes.${change.outcome}`)}</Tag>}
      </h3>
      {findings && wrong.length > 0 && (
        <ul class={`note ${change.outcome === "refused" ? "bad" : "warn"}`}>
          {wrong.map((d, i) => (
            <li key={i}>
              <strong>{d.message}</strong>
              {d.fix && <span class="muted"> {d.fix}</span>}
            </li>
          ))}
        </ul>
      )}
      {change.diff.length > 0 && (
        <div class="table-wrap" tabIndex={0} role="region" aria-label={msg("agents.changesOf", { name: change.name })}>
          <table class="table agents-changes">
            <thead>
              <tr>
                <th scope="col">{msg("agents.field")}</th>
                <th scope="col">{msg("agents.was")}</th>
                <th scope="col">{msg("agents.is")}</th>
              </tr>
            </thead>
            <tbody>
              {change.diff.map((f) => (
                <FieldRow key={f.path} field={f} before={before} after={after} />
              ))}
            </tbody>
          </table>
        </div>
      )}
    </section>
  );
}

const looks = { created: "good", updated: "accent", unchanged: "", refused: "bad", skipped: "warn" } as const;

function FieldRow({ field, before, after }: { field: Schema["Field"]; before?: unknown; after?: unknown }) {
  const old = whole(before, field.path, field.old);
  const now = whole(after, field.path, field.new);
  const lines = typeof old === "string" && typeof now === "string" && (old.includes("\n") || now.includes("\n"));
  if (lines)
    return (
      <tr>
        <th scope="row">
          <code>{field.path}</code>
        </th>
        <td colSpan={2}>
          <Diff diff={unified(old, now)} path={`${field.path}.md`} />
        </td>
      </tr>
    );
  return (
    <tr>
      <th scope="row">
        <code>{field.path}</code>
      </th>
      <td>
        <Value of={old} text={field.old} />
      </td>
      <td>
        <Value of={now} text={field.new} />
      </td>
    </tr>
  );
}

/** Value shows a value, or an empty cell. */
function Value({ of, text }: { of: unknown; text?: string }) {
  if (of === undefined && !text) return <span class="muted">{msg("agents.nothing")}</span>;
  return <span class="agents-value">{typeof of === "string" ? of : of === undefined ? text : JSON.stringify(of)}</span>;
}

/** whole returns the full value of a change. The hub shortens long values; the document has all of it. */
function whole(doc: unknown, path: string, json: string | undefined): unknown {
  try {
    return json === undefined ? undefined : JSON.parse(json);
  } catch {
    return at(doc, path) ?? json;
  }
}

/** at returns the text at a path of a document, in the hub's path syntax. */
function at(doc: unknown, path: string): string | undefined {
  const steps = path === "description" ? ["metadata", "description"] : path.replace(/\[(\d+)\]/g, ".$1").split(".");
  let v: unknown = doc;
  for (const step of steps) v = typeof v === "object" && v !== null ? (v as Record<string, unknown>)[step] : undefined;
  return typeof v === "string" ? v : undefined;
}
