import type { Schema } from "../api/client";
import { Diff } from "../content";
import { unified } from "../content/compare";
import { Tag } from "../ui";
import { w } from "./words";

export type Change = Schema["Change"];

/** What would come of one document: what is wrong with it, and each value that is different. */
export function ChangeView({ change, before, after, findings = true }: { change: Change; before?: unknown; after?: unknown; findings?: boolean }) {
  const t = w();
  const wrong = change.findings.filter((d) => d.severity !== "info");
  return (
    <section class="stack tight">
      <h3 class="row">{change.kind} {change.name}{!change.stale && <Tag look={looks[change.outcome]}>{t.outcomes[change.outcome]}</Tag>}</h3>
      {findings && wrong.length > 0 && <ul class={`note ${change.outcome === "refused" ? "bad" : "warn"}`}>{wrong.map((d, i) => <li key={i}><strong>{d.message}</strong>{d.fix && <span class="muted"> {d.fix}</span>}</li>)}</ul>}
      {change.diff.length > 0 && (
        <div class="table-wrap" tabIndex={0} role="region" aria-label={t.changesOf(change.name)}>
          <table class="table agents-changes">
            <thead><tr><th scope="col">{t.field}</th><th scope="col">{t.was}</th><th scope="col">{t.is}</th></tr></thead>
            <tbody>{change.diff.map((f) => <FieldRow key={f.path} field={f} before={before} after={after} />)}</tbody>
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
  if (lines) return <tr><th scope="row"><code>{field.path}</code></th><td colSpan={2}><Diff diff={unified(old, now)} path={`${field.path}.md`} /></td></tr>;
  return <tr><th scope="row"><code>{field.path}</code></th><td><Value of={old} text={field.old} /></td><td><Value of={now} text={field.new} /></td></tr>;
}

/** A value; nothing is where there was none. */
function Value({ of, text }: { of: unknown; text?: string }) {
  if (of === undefined && !text) return <span class="muted">{w().nothing}</span>;
  return <span class="agents-value">{typeof of === "string" ? of : of === undefined ? text : JSON.stringify(of)}</span>;
}

/** A value of a change. The hub cuts long ones, of which the document has all. */
function whole(doc: unknown, path: string, json: string | undefined): unknown {
  try {
    return json === undefined ? undefined : JSON.parse(json);
  } catch {
    return at(doc, path) ?? json;
  }
}

/** The text at a path of a document, as the hub writes paths. */
function at(doc: unknown, path: string): string | undefined {
  const steps = path === "description" ? ["metadata", "description"] : path.replace(/\[(\d+)\]/g, ".$1").split(".");
  let v: unknown = doc;
  for (const step of steps) v = typeof v === "object" && v !== null ? (v as Record<string, unknown>)[step] : undefined;
  return typeof v === "string" ? v : undefined;
}
