import type { Schema } from "../api/client";
import type { Mark } from "../content";
import { Tag } from "../ui";
import { d } from "./words-detail";

type Finding = Schema["Finding"];

/** From the worst to what is only good to know. */
export const severities = ["high", "medium", "low", "info"] as const;

const levels: Record<Finding["severity"], Mark["level"]> = { high: "bad", medium: "warn", low: "warn", info: "info" };

/** Findings as what is said beside the lines of a file. */
export const marksOf = (found: Finding[]): Mark[] => found.filter((f) => f.line > 0).map((f) => ({ line: f.line, level: levels[f.severity], say: <Said finding={f} /> }));

/** What a finding is, and what to do about it. */
export function Said({ finding }: { finding: Finding }) {
  return (
    <div class="library-said">
      <Severity of={finding.severity} /> <strong>{finding.message}</strong>
      <div class="muted">{finding.advice} <code>{finding.rule}</code></div>
    </div>
  );
}

export function Severity({ of }: { of: Finding["severity"] }) {
  const look = ({ high: "bad", medium: "warn", low: "", info: "" } as const)[of];
  return <Tag look={look}>{d().severities[of]}</Tag>;
}
