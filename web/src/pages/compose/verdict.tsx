import type { ComponentChildren } from "preact";
import type { Schema } from "../../shared/api/client";
import { short } from "../../shared/i18n/format";
import { msg } from "../../shared/i18n/messages";
import { Tag } from "../../shared/ui";
import type { Work } from "./draftstate";
import { isAway, type CheckResult } from "./validation";

/** Verdict shows the result of the check in one line. */
export function Verdict({ work, result }: { work: Work; result: CheckResult<Schema["Checked"]> }) {
  const c = result.data;
  return (
    <div class="compose-verdict">
      <span role="status">
        {c ? <VerdictTag checked={c} /> : !result.error && <span class="muted">{msg("compose.checking")}…</span>}
      </span>
      {c && <Facts work={work} checked={c} />}
      {result.error && !isAway(result.error) && <span class="compose-bad">{result.error.message}</span>}
      <span class="push row small muted">
        {c && result.busy && <span>{msg("compose.checking")}…</span>}
        {work.changed ? (
          <span>{work.safe ? `${msg("compose.unsaved")} · ${msg("compose.keptHere")}` : msg("compose.unsaved")}</span>
        ) : (
          work.of && <span>{msg("compose.allSaved")}</span>
        )}
      </span>
    </div>
  );
}

/** VerdictTag shows the verdict: strict, lenient or refused. */
export function VerdictTag({ checked }: { checked: Schema["Checked"] }): ComponentChildren {
  if (!checked.loads) return <Tag look="bad">{msg("compose.refused")}</Tag>;
  return checked.valid ? (
    <Tag look="good">{msg("compose.strict")}</Tag>
  ) : (
    <Tag look="warn">{msg("compose.lenient")}</Tag>
  );
}

function Facts({ work, checked: c }: { work: Work; checked: Schema["Checked"] }) {
  const remarks = c.diagnostics.length;
  return (
    <>
      {c.taken ? (
        <Tag look="warn">{msg("compose.nameTaken")}</Tag>
      ) : (
        c.name && !work.of && <Tag>{msg("compose.nameFree")}</Tag>
      )}
      {remarks > 0 && (
        <Tag
          look={
            c.diagnostics.some((d) => d.severity === "error")
              ? "bad"
              : c.diagnostics.some((d) => d.severity === "warning")
                ? "warn"
                : ""
          }
        >
          {msg("compose.problems", { count: remarks })}
        </Tag>
      )}
      {c.findings.length > 0 && (
        <Tag look={c.findings.some((f) => f.severity === "high") ? "bad" : "warn"}>
          {msg("compose.findings", { count: c.findings.length })}
        </Tag>
      )}
      {c.tokens.instructions > 0 && (
        <span class="small muted">{msg("compose.tokens", { n: short(c.tokens.instructions) })}</span>
      )}
    </>
  );
}
