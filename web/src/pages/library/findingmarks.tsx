import type { Schema } from "../../shared/api/client";
import type { Mark } from "../../shared/content";
import { msg } from "../../shared/i18n/messages";
import { translateFinding } from "../../shared/servertext/finding";
import { Tag } from "../../shared/ui";

type Finding = Schema["Finding"];

/** The severities, worst first. */
export const severities = ["high", "medium", "low", "info"] as const;

const levels: Record<Finding["severity"], Mark["level"]> = { high: "bad", medium: "warn", low: "warn", info: "info" };

/** marksOf returns findings as marks beside their lines. */
export const marksOf = (found: Finding[]): Mark[] =>
  found
    .filter((f) => f.line > 0)
    .map((f) => ({ line: f.line, level: levels[f.severity], say: <FindingText finding={f} /> }));

/** FindingText describes a finding and its fix. */
export function FindingText({ finding: said }: { finding: Finding }) {
  const finding = translateFinding(said);
  return (
    <div class="library-said">
      <Severity of={finding.severity} /> <strong>{finding.message}</strong>
      <div class="muted">
        {finding.advice} <code>{finding.rule}</code>
      </div>
    </div>
  );
}

export function Severity({ of }: { of: Finding["severity"] }) {
  const look = ({ high: "bad", medium: "warn", low: "", info: "" } as const)[of];
  return <Tag look={look}>{msg(`skill.severities.${of}`)}</Tag>;
}
