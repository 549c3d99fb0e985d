import type { ComponentChildren } from "preact";
import type { Schema } from "../api/client";
import { Tag } from "../ui";
import { short } from "../words";
import { isAway, type Said } from "./check";
import { w } from "./words";
import type { Work } from "./work";

/** What the hub says of the draft, in a line. */
export function Verdict({ work, said }: { work: Work; said: Said<Schema["Checked"]> }) {
  const c = said.data;
  return (
    <div class="compose-verdict">
      <span role="status">{c ? <VerdictTag checked={c} /> : !said.error && <span class="muted">{w().checking}…</span>}</span>
      {c && <Facts work={work} checked={c} />}
      {said.error && !isAway(said.error) && <span class="compose-bad">{said.error.message}</span>}
      <span class="push row small muted">
        {c && said.busy && <span>{w().checking}…</span>}
        {work.changed ? <span>{work.safe ? `${w().unsaved} · ${w().keptHere}` : w().unsaved}</span> : work.of && <span>{w().allSaved}</span>}
      </span>
    </div>
  );
}

/** The verdict: strict, lenient, or none. */
export function VerdictTag({ checked }: { checked: Schema["Checked"] }): ComponentChildren {
  if (!checked.loads) return <Tag look="bad">{w().refused}</Tag>;
  return checked.valid ? <Tag look="good">{w().strict}</Tag> : <Tag look="warn">{w().lenient}</Tag>;
}

function Facts({ work, checked: c }: { work: Work; checked: Schema["Checked"] }) {
  const remarks = c.diagnostics.length;
  return (
    <>
      {c.taken ? <Tag look="warn">{w().nameTaken}</Tag> : c.name && !work.of && <Tag>{w().nameFree}</Tag>}
      {remarks > 0 && <Tag look={c.diagnostics.some((d) => d.severity === "error") ? "bad" : c.diagnostics.some((d) => d.severity === "warning") ? "warn" : ""}>{w().problems(remarks)}</Tag>}
      {c.findings.length > 0 && <Tag look={c.findings.some((f) => f.severity === "high") ? "bad" : "warn"}>{w().findings(c.findings.length)}</Tag>}
      {c.tokens.instructions > 0 && <span class="small muted">{w().tokens(short(c.tokens.instructions))}</span>}
    </>
  );
}
